#include "tls/ktls_choice.h"

#include "../runner.h"

#define KIB(n) ((uint64_t)(n) << 10)

/* Made figures, in ns for 16, 64, 256 and 1024 KiB. */
static const struct decision {
    const char *name;
    bool offload;
    struct ktls_figures figures;
    uint64_t from;
} decisions[] = {
    {"the kernel at every size", false, {{10, 40, 160, 640}, {20, 80, 320, 1280}}, KIB(16)},
    {"the kernel once its setup is paid for", false, {{90, 120, 240, 720}, {20, 80, 320, 1280}}, KIB(256)},
    {"the kernel at the largest size only", false, {{90, 120, 340, 1200}, {20, 80, 320, 1280}}, KIB(1024)},
    {"user space at every size", false, {{90, 120, 340, 1300}, {20, 80, 320, 1280}}, KTLS_NEVER},
    {"user space at the largest size", false, {{10, 40, 160, 1300}, {20, 80, 320, 1280}}, KTLS_NEVER},
    {"user space at one size in between", false, {{10, 40, 330, 640}, {20, 80, 320, 1280}}, KIB(1024)},
    {"equal", false, {{20, 80, 320, 1280}, {20, 80, 320, 1280}}, KTLS_NEVER},
    {"equal below the largest size", false, {{20, 80, 320, 1279}, {20, 80, 320, 1280}}, KIB(1024)},
    {"a NIC, although user space is faster", true, {{90, 120, 340, 1300}, {20, 80, 320, 1280}}, 0},
    {"a NIC without figures", true, {{0}, {0}}, 0},
    {"no figures", false, {{0}, {0}}, 0},
    {"none of the kernel", false, {{0}, {20, 80, 320, 1280}}, 0},
    {"none of user space", false, {{10, 40, 160, 640}, {0}}, 0},
    {"the smallest sizes only, the kernel", false, {{10, 40, 0, 0}, {20, 80, 320, 0}}, KIB(16)},
    {"the smallest sizes only, user space", false, {{10, 90, 0, 0}, {20, 80, 0, 0}}, KTLS_NEVER},
    {"none of the smallest size", false, {{0, 40, 160, 640}, {20, 80, 320, 1280}}, KIB(64)},
};

START_TEST(figures_decide_from_which_size_the_kernel_encrypts)
{
    const struct decision *row = &decisions[_i];
    struct ktls_choice choice = {.offload = row->offload};

    choice.figures[RECORD_AES_256_GCM] = row->figures;
    ktls_choose(&choice);
    ck_assert_msg(choice.threshold[RECORD_AES_256_GCM] == row->from, "%s: %llu", row->name,
                  (unsigned long long)choice.threshold[RECORD_AES_256_GCM]);
    ck_assert_uint_eq(choice.threshold[RECORD_AES_128_GCM], 0); /* a cipher without figures */
    ck_assert(ktls_choice_is_kernel(&choice, RECORD_AES_256_GCM, UINT64_MAX) == (row->from != KTLS_NEVER));
    if (row->from && row->from != KTLS_NEVER) {
        ck_assert(ktls_choice_is_kernel(&choice, RECORD_AES_256_GCM, row->from));
        ck_assert(!ktls_choice_is_kernel(&choice, RECORD_AES_256_GCM, row->from - 1));
    }
}
END_TEST

START_TEST(zeroed_choice_is_the_kernel)
{
    struct ktls_choice choice = {0};

    ck_assert(ktls_choice_is_kernel(&choice, RECORD_AES_128_GCM, 0));
    ck_assert(ktls_choice_is_kernel(&choice, RECORD_CHACHA20_POLY1305, 1));
}
END_TEST

START_TEST(figures_per_kib_are_of_the_largest_measured_size)
{
    struct ktls_figures figures = {{1000, 4000, 25600, 102400}, {1000, 4000, 51200, 0}};
    uint32_t kernel_ns = 1, user_ns = 1;

    ck_assert(ktls_figures_per_kib(&figures, &kernel_ns, &user_ns));
    ck_assert_uint_eq(kernel_ns, 100); /* of 256 KiB, the largest size with both */
    ck_assert_uint_eq(user_ns, 200);
    figures = (struct ktls_figures){{1, 2, 3, 4}, {0}};
    ck_assert(!ktls_figures_per_kib(&figures, &kernel_ns, &user_ns));
    ck_assert_uint_eq(kernel_ns, 0);
    ck_assert_uint_eq(user_ns, 0);
}
END_TEST

static const struct {
    struct ktls_choice choice;
    const char *text;
} texts[] = {
    {{.figures = {[RECORD_AES_128_GCM] = {{[3] = 1024 * 131}, {[3] = 1024 * 95}}}},
     "the kernel takes 131 ns of CPU time per KiB, user space 95: user space encrypts"},
    {{.figures = {[RECORD_AES_128_GCM] = {{20000, 80000, 32000, 97280}, {16000, 64000, 64000, 134144}}}},
     "the kernel takes 95 ns of CPU time per KiB, user space 131: the kernel encrypts bodies from 256 KiB on"},
    {{.figures = {[RECORD_AES_128_GCM] = {{1, 2, 3, 97280}, {2, 4, 6, 134144}}}},
     "the kernel takes 95 ns of CPU time per KiB, user space 131: the kernel encrypts"},
    {{.offload = true, .figures = {[RECORD_AES_128_GCM] = {{[3] = 1024 * 131}, {[3] = 1024 * 95}}}},
     "the kernel takes 131 ns of CPU time per KiB, user space 95: the NIC encrypts"},
    {{.offload = true}, "not measured: the NIC encrypts"},
    {{.offload = false}, "not measured: the kernel encrypts"},
};

START_TEST(choice_is_described_within_its_buffer)
{
    struct ktls_choice choice = texts[_i].choice;
    char space[192], small[8];

    ktls_choose(&choice);
    ck_assert_str_eq(ktls_choice_describe(&choice, RECORD_AES_128_GCM, space, sizeof(space)).data, texts[_i].text);
    ck_assert_uint_eq(ktls_choice_describe(&choice, RECORD_AES_128_GCM, small, sizeof(small)).length, 7);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, figures_decide_from_which_size_the_kernel_encrypts,
                        0, sizeof(decisions) / sizeof(decisions[0]));
    tcase_add_test(tcase, zeroed_choice_is_the_kernel);
    tcase_add_test(tcase, figures_per_kib_are_of_the_largest_measured_size);
    tcase_add_loop_test(tcase, choice_is_described_within_its_buffer, 0, sizeof(texts) / sizeof(texts[0]));
}

int main(void)
{
    return run_suite("ktls_choice", add_tests);
}
