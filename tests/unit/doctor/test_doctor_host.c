/*
 * The findings of the doctor on simulated machines: a directory contains their files of /proc and /sys.
 */
#include "doctor/doctor.h"

#include "build_options.h"

#include "machine.h"

#define RELEASE  "6.1.0-test"
#define ROOT     "CapEff:\t000001ffffffffff\nSeccomp:\t0\n"
#define NOBODY   "CapEff:\t0000000000000000\nSeccomp:\t0\n"
#define MACHINE  "         0          0 4294967295\n"
#define OWN      "         0       1000          1\n"
#define MODPROBE "/sbin/modprobe\n"

static struct diagnosis diagnosis;

static int offload_of(const char *device, struct ktls_device *out_device)
{
    if (strcmp(device, "silent0") == 0)
        return -EOPNOTSUPP;
    *out_device = (struct ktls_device){.available = strncmp(device, "fixed", 5) != 0,
                                    .active = strncmp(device, "on", 2) == 0};
    return 0;
}

static const struct host host = {root, offload_of};

static void tear_down(void)
{
    machine_remove();
}

static void set_up(void)
{
    diagnosis = (struct diagnosis){.count = 0};
    machine_make();
}

static const struct finding *find(const char *name)
{
    for (unsigned i = 0; i < diagnosis.count; i++) {
        if (strcmp(diagnosis.findings[i].name, name) == 0)
            return &diagnosis.findings[i];
    }
    return NULL;
}

/* text NULL: there must be no such finding. advice NULL: there must be no advice. */
static void expect(int number, const char *name, enum verdict verdict, const char *text, const char *advice)
{
    const struct finding *found = find(name);

    if (!text) {
        ck_assert_msg(!found, "%d: %s: %s", number, name, found ? found->text : "");
        return;
    }
    ck_assert_msg(found != NULL, "%d: no %s", number, name);
    ck_assert_msg(found->verdict == verdict, "%d: %s is %d", number, name, (int)found->verdict);
    ck_assert_msg(strstr(found->text, text) != NULL, "%d: \"%s\" is not in \"%s\"", number, text,
                  found->text);
    if (advice)
        ck_assert_msg(strstr(found->advice, advice) != NULL, "%d: \"%s\" is not in \"%s\"", number, advice,
                      found->advice);
    else
        ck_assert_msg(found->advice[0] == '\0', "%d: \"%s\"", number, found->advice);
}

static const struct {
    enum ktls_reason reason;
    const char *modules, *status, *map, *modprobe, *program, *disabled, *ko, *config;
    enum verdict module_verdict;
    const char *module, *module_advice;
    enum verdict autoload_verdict;
    const char *autoload, *autoload_advice;
} kernels[] = {
    /* Available: built in; a module that can be loaded again; a module that cannot. */
    {KTLS_OK, "x 1 0\n", NOBODY, MACHINE, MODPROBE, "", "0\n", NULL, NULL, VERDICT_GOOD, "is available", NULL,
     VERDICT_GOOD, NULL, NULL},
    {KTLS_OK, "x 1 0\ntls 151552 0 - Live\n", ROOT, MACHINE, MODPROBE, "", "0\n", NULL, NULL, VERDICT_GOOD,
     "is available", NULL, VERDICT_GOOD, "would load it again", NULL},
    {KTLS_CIPHER, "tls 151552 0 - Live\n", ROOT, MACHINE, MODPROBE, "", NULL, NULL, NULL, VERDICT_GOOD,
     "is available", NULL, VERDICT_GOOD, "would load it again", NULL},
    {KTLS_OK, "tls 151552 0 - Live\n", NOBODY, MACHINE, MODPROBE, "", "0\n", NULL, NULL, VERDICT_GOOD,
     "is available", NULL, VERDICT_NOTE, "CAP_NET_ADMIN", "/etc/modules-load.d/tls.conf"},
    {KTLS_OK, "tls 151552 0 - Live\n", ROOT, OWN, MODPROBE, "", "0\n", NULL, NULL, VERDICT_GOOD, "is available",
     NULL, VERDICT_NOTE, "user namespace", "modules-load.d"},
    /* Not available, but it can be loaded. */
    {KTLS_NO_MODULE, NULL, ROOT, MACHINE, MODPROBE, "", "0\n", "", NULL, VERDICT_FAULT, "no TLS",
     "modprobe tls; to keep", VERDICT_NOTE, "modprobe ran", NULL},
    {KTLS_NO_MODULE, NULL, NOBODY, MACHINE, MODPROBE, "", "0\n", "", "CONFIG_NET=y\nCONFIG_TLS=m\n",
     VERDICT_FAULT, "no TLS", "as root: modprobe tls", VERDICT_NOTE, "CAP_NET_ADMIN", NULL},
    {KTLS_NO_MODULE, NULL, ROOT, OWN, MODPROBE, "", "0\n", "", NULL, VERDICT_FAULT, "no TLS",
     "the host must load it", VERDICT_NOTE, "user namespace", NULL},
    {KTLS_NO_MODULE, NULL, ROOT, MACHINE, MODPROBE, "", "1\n", "", NULL, VERDICT_FAULT, "no TLS",
     "modprobe tls", VERDICT_NOTE, "modules_disabled", NULL},
    {KTLS_NO_MODULE, NULL, ROOT, MACHINE, "\n", "", "0\n", "", NULL, VERDICT_FAULT, "no TLS", "modprobe tls",
     VERDICT_NOTE, "kernel.modprobe is empty", NULL},
    {KTLS_NO_MODULE, NULL, ROOT, MACHINE, MODPROBE, NULL, "0\n", "", NULL, VERDICT_FAULT, "no TLS",
     "modprobe tls", VERDICT_NOTE, "/sbin/modprobe, which the kernel runs, does not exist", NULL},
    /* Not available, and it cannot be loaded. */
    {KTLS_NO_MODULE, NULL, ROOT, MACHINE, MODPROBE, "", "0\n", NULL,
     "CONFIG_NET=y\n# CONFIG_TLS is not set\n", VERDICT_FAULT, "no TLS", "built without CONFIG_TLS",
     VERDICT_NOTE, "modprobe ran", NULL},
    {KTLS_NO_MODULE, NULL, ROOT, MACHINE, MODPROBE, "", "0\n", NULL, NULL, VERDICT_FAULT, "no TLS",
     "no module tls is installed", VERDICT_NOTE, "modprobe ran", NULL},
    {KTLS_NO_MODULE, NULL, ROOT, OWN, NULL, NULL, NULL, NULL, NULL, VERDICT_FAULT, "no TLS",
     "built without CONFIG_TLS", VERDICT_NOTE, "loads no modules", NULL},
    /* A build without kernel TLS does not test the kernel. */
    {KTLS_NOT_BUILT, NULL, ROOT, MACHINE, MODPROBE, "", "0\n", NULL, NULL, VERDICT_GOOD, NULL, NULL,
     VERDICT_GOOD, NULL, NULL},
};

START_TEST(advice_on_the_tls_module_follows_the_machine)
{
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        set_up();
        diagnosis.support.reason[1][RECORD_AES_128_GCM] = kernels[i].reason;
        write_host_file("/proc/sys/kernel/osrelease", RELEASE "\n");
        write_host_file("/proc/modules", kernels[i].modules);
        write_host_file("/proc/self/status", kernels[i].status);
        write_host_file("/proc/self/uid_map", kernels[i].map);
        write_host_file("/proc/sys/kernel/modprobe", kernels[i].modprobe);
        write_host_file("/proc/sys/kernel/modules_disabled", kernels[i].disabled);
        write_host_file("/sbin/modprobe", kernels[i].program);
        write_host_file("/lib/modules/" RELEASE "/kernel/net/tls/tls.ko.xz", kernels[i].ko);
        write_host_file("/boot/config-" RELEASE, kernels[i].config);
        doctor_examine_module(&diagnosis, &host);
        expect((int)i, "kernel", VERDICT_GOOD, "Linux " RELEASE, NULL);
        expect((int)i, "module", kernels[i].module_verdict, kernels[i].module, kernels[i].module_advice);
        expect((int)i, "autoload", kernels[i].autoload_verdict, kernels[i].autoload,
               kernels[i].autoload_advice);
        tear_down();
    }
}
END_TEST

START_TEST(support_for_rekeying_is_reported)
{
    set_up();
    doctor_examine_module(&diagnosis, &host);
    expect(0, "rekey", VERDICT_NOTE, "no second key", NULL);
    tear_down();
    set_up();
    diagnosis.support.rekey = true;
    doctor_examine_module(&diagnosis, &host);
    expect(1, "rekey", VERDICT_GOOD, "connections continue", NULL);
    tear_down();
}
END_TEST

static const struct {
    int error;
    const char *disabled, *status;
    enum verdict verdict;
    const char *text, *advice;
} loops[] = {
    {0, "2\n", ROOT, VERDICT_GOOD, "loop: io_uring works", NULL},
    {-EPERM, "2\n", ROOT, VERDICT_NOTE, "Operation not permitted", "io_uring_disabled is 2"},
    {-EPERM, "1\n", ROOT, VERDICT_NOTE, "Operation not permitted", "io_uring_group"},
    {-EPERM, "0\n", "Seccomp:\t2\n", VERDICT_NOTE, "Operation not permitted", "seccomp filter"},
    {-EPERM, NULL, ROOT, VERDICT_NOTE, "Operation not permitted", "security module"},
    {-EPERM, NULL, NULL, VERDICT_NOTE, "Operation not permitted", "security module"},
    {-ENOSYS, NULL, ROOT, VERDICT_NOTE, "Function not implemented", "has no io_uring"},
    {-ENOMEM, NULL, ROOT, VERDICT_NOTE, "Cannot allocate memory", "RLIMIT_MEMLOCK"},
    {-EMFILE, NULL, ROOT, VERDICT_NOTE, "Too many open files", "RLIMIT_NOFILE"},
    {-ENOPKG, NULL, ROOT, VERDICT_NOTE, "Package not installed", "not built in"},
    {-EIO, NULL, ROOT, VERDICT_NOTE, "Input/output error", NULL},
};

START_TEST(reason_without_io_uring_is_reported)
{
    for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++) {
        set_up();
        write_host_file("/proc/sys/kernel/io_uring_disabled", loops[i].disabled);
        write_host_file("/proc/self/status", loops[i].status);
        doctor_report_loop(&diagnosis, &host, "io_uring", loops[i].error);
        expect((int)i, "loop", loops[i].verdict, loops[i].text, loops[i].advice);
        tear_down();
    }
}
END_TEST

#define LIMITS(soft, hard)                                                                                   \
    "Limit                     Soft Limit           Hard Limit           Units     \n"                       \
    "Max open files            " soft "                 " hard "                files     \n"                \
    "Max locked memory         8388608              8388608              bytes     \n"

static const struct {
    const char *limits;
    enum verdict verdict;
    const char *text, *advice;
} limits[] = {
    {LIMITS("1024", "20000"), VERDICT_GOOD,
     "open files: 1024, raised to 20000 at start: enough for 9984 worker_connections", NULL},
    {LIMITS("1024", "8224"), VERDICT_GOOD, "enough for 4096 worker_connections (the default is 4096)", NULL},
    {LIMITS("1024", "8223"), VERDICT_NOTE, "enough for 4095 worker_connections",
     "raise the hard limit to 8224"},
    {LIMITS("16", "16"), VERDICT_NOTE, "enough for 0 worker_connections", "LimitNOFILE"},
    {LIMITS("1024", "unlimited"), VERDICT_GOOD, "worker_connections", NULL},
    {"Max open files\n", VERDICT_GOOD, NULL, NULL},
    {"", VERDICT_GOOD, NULL, NULL},
};

START_TEST(low_descriptor_limits_are_reported)
{
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        set_up();
        write_host_file("/proc/self/limits", limits[i].limits);
        doctor_examine_limits(&diagnosis, &host);
        expect((int)i, "files", limits[i].verdict, limits[i].text, limits[i].advice);
        expect((int)i, "memlock", VERDICT_GOOD, i < 5 ? "8192 KiB" : NULL, NULL);
        tear_down();
    }
}
END_TEST

static const struct {
    const char *wmem, *wmem_max;
    enum verdict verdict;
    const char *text, *advice;
} buffers[] = {
    {"4096\t16384\t4194304\n", "212992\n", VERDICT_GOOD, "from 16 to 4096 KiB", NULL},
    {"4096\t16384\t1048576\n", NULL, VERDICT_GOOD, "from 16 to 1024 KiB", NULL},
    {"4096\t16384\t262144\n", "212992\n", VERDICT_NOTE, "from 16 to 256 KiB",
     "net.ipv4.tcp_wmem=\"4096 16384 4194304\""},
    {"nonsense\n", "x\n", VERDICT_GOOD, NULL, NULL},
    {NULL, NULL, VERDICT_GOOD, NULL, NULL},
};

START_TEST(small_send_buffers_are_reported)
{
    for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++) {
        set_up();
        write_host_file("/proc/sys/net/ipv4/tcp_wmem", buffers[i].wmem);
        write_host_file("/proc/sys/net/core/wmem_max", buffers[i].wmem_max);
        doctor_examine_buffers(&diagnosis, &host);
        expect((int)i, "buffers", buffers[i].verdict, buffers[i].text, buffers[i].advice);
        expect((int)i, "wmem_max", VERDICT_GOOD, buffers[i].text && buffers[i].wmem_max ? "208 KiB" : NULL,
               NULL);
        tear_down();
    }
}
END_TEST

static void put_device(const char *name, const char *type)
{
    char path[128];

    snprintf(path, sizeof(path), "/sys/class/net/%s/type", name);
    write_host_file(path, type);
}

START_TEST(devices_that_could_encrypt_are_reported)
{
    set_up();
    doctor_examine_devices(&diagnosis, &host);
    ck_assert_uint_eq(diagnosis.count, 0);
    write_host_file("/sys/class/net/bonding_masters", "\n");
    put_device("lo", "772\n");
    put_device("able0", "1\n");
    put_device("fixed0", "1\n");
    put_device("on0", "1\n");
    put_device("silent0", "1\n");
    doctor_examine_devices(&diagnosis, &host);
    ck_assert_uint_eq(diagnosis.count, 4);
    ck_assert_str_eq(diagnosis.findings[0].text, "able0: does not encrypt TLS (tls-hw-tx-offload: off)");
    ck_assert_ptr_nonnull(strstr(diagnosis.findings[0].advice, "ethtool -K able0 tls-hw-tx-offload on"));
    ck_assert_str_eq(diagnosis.findings[1].text,
                     "fixed0: does not encrypt TLS (tls-hw-tx-offload: off [fixed])");
    ck_assert_str_eq(diagnosis.findings[1].advice, "");
    ck_assert_str_eq(diagnosis.findings[2].text, "on0: encrypts TLS by itself (tls-hw-tx-offload: on)");
    ck_assert_int_eq(diagnosis.findings[2].verdict, VERDICT_GOOD);
    ck_assert_str_eq(diagnosis.findings[3].text, "silent0: TLS offload could not be queried");
    tear_down();
}
END_TEST

START_TEST(number_of_examined_devices_is_limited)
{
    char name[16];

    set_up();
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "veth%d", i);
        put_device(name, "1\n");
    }
    doctor_examine_devices(&diagnosis, &host);
    ck_assert_uint_eq(diagnosis.count, 9);
    ck_assert_str_eq(diagnosis.findings[8].text, "92 more network devices were not examined");
    tear_down();
}
END_TEST

START_TEST(engine_of_each_cipher_is_reported)
{
    struct aead_choice choice = {.kind = {[RECORD_AES_128_GCM] = AEAD_IPSEC_MB},
                                 .figures = {[AEAD_OPENSSL][RECORD_AES_128_GCM] = {469, 3968},
                                             [AEAD_IPSEC_MB][RECORD_AES_128_GCM] = {312, 3861}}};

    set_up();
    memset(choice.state, AEAD_USABLE, sizeof(choice.state));
    choice.state[AEAD_IPSEC_MB][RECORD_AES_256_GCM] = AEAD_WRONG;
    choice.state[AEAD_IPSEC_MB][RECORD_CHACHA20_POLY1305] = AEAD_NO_CIPHER;
    doctor_report_aead(&diagnosis, &choice);
    ck_assert_uint_eq(diagnosis.count, 3);
    ck_assert_str_eq(diagnosis.findings[0].text, "AES-128-GCM in user space: ipsec-mb: 312 ns per record of 1200 "
                                                 "bytes, 3861 ns of 16384; openssl: 469 ns, 3968 ns");
    ck_assert_uint_eq(diagnosis.findings[0].verdict, VERDICT_GOOD);
    ck_assert_str_eq(diagnosis.findings[0].advice, "");
    ck_assert_str_eq(diagnosis.findings[1].text, "AES-256-GCM in user space: openssl");
    ck_assert_uint_eq(diagnosis.findings[1].verdict, VERDICT_NOTE);
    ck_assert_str_eq(diagnosis.findings[1].advice, "ipsec-mb encrypts incorrectly on this processor, and is not used");
    ck_assert_str_eq(diagnosis.findings[2].text, "ChaCha20-Poly1305 in user space: openssl");
    ck_assert_str_eq(diagnosis.findings[2].advice, "");
    tear_down();
}
END_TEST

/* The doctor advises nothing that is impossible on the machine. */
START_TEST(engine_that_is_not_built_is_reported)
{
    struct aead_choice choice = {0};

    set_up();
    memset(choice.state[AEAD_OPENSSL], AEAD_USABLE, sizeof(choice.state[AEAD_OPENSSL]));
    memset(choice.state[AEAD_IPSEC_MB], AEAD_NOT_BUILT, sizeof(choice.state[AEAD_IPSEC_MB]));
    doctor_report_aead(&diagnosis, &choice);
    ck_assert_int_eq(strstr(diagnosis.findings[0].advice, "libipsec-mb-dev") != NULL, BUILD_AMD64);
    ck_assert_str_eq(diagnosis.findings[1].advice, "");
    choice.state[AEAD_OPENSSL][RECORD_AES_256_GCM] = AEAD_WRONG;
    doctor_report_aead(&diagnosis, &choice);
    ck_assert_uint_eq(diagnosis.findings[4].verdict, VERDICT_NOTE);
    ck_assert(str_starts(str_from(diagnosis.findings[4].advice), STR("OpenSSL encrypts incorrectly")));
    tear_down();
}
END_TEST

/* Only ciphers that the kernel supports are reported. */
START_TEST(cost_in_kernel_and_user_space_is_reported)
{
    struct ktls_choice choice = {.figures = {[RECORD_AES_128_GCM] = {{[3] = 1024 * 131}, {[3] = 1024 * 95}},
                                             [RECORD_AES_256_GCM] = {{[3] = 1024 * 95}, {[3] = 1024 * 131}}}};

    set_up();
    for (unsigned cipher = 0; cipher < RECORD_CIPHERS; cipher++)
        diagnosis.support.reason[0][cipher] = diagnosis.support.reason[1][cipher] = KTLS_OK;
    diagnosis.support.reason[0][RECORD_CHACHA20_POLY1305] = KTLS_CIPHER;
    diagnosis.support.reason[1][RECORD_CHACHA20_POLY1305] = KTLS_CIPHER;
    ktls_choose(&choice);
    doctor_report_choice(&diagnosis, &choice);
    ck_assert_uint_eq(diagnosis.count, 2);
    ck_assert_str_eq(diagnosis.findings[0].name, "cost");
    ck_assert_str_eq(diagnosis.findings[0].text, "AES-128-GCM with ssl_ktls: auto: the kernel takes 131 ns of CPU time "
                                                 "per KiB, user space 95: user space encrypts");
    ck_assert_str_eq(diagnosis.findings[1].text,
                     "AES-256-GCM with ssl_ktls: auto: the kernel takes 95 ns of CPU time per KiB, user space 131: "
                     "the kernel encrypts bodies from 1024 KiB on");
    tear_down();
}
END_TEST

/* The loopback device always exists. The kernel may reject the query. */
START_TEST(query_of_a_real_device_gives_a_known_result)
{
    struct ktls_device offload = {false, false};
    int error = ktls_device_query("lo", &offload);

    if (error == -ENOTTY || error == -ENOSYS)
        SKIP_TEST("the ioctl SIOCETHTOOL is not implemented");
    ck_assert(error == 0 || error == -ENOENT || error == -EOPNOTSUPP || error == -ENODEV);
    ck_assert(!offload.active);
    ck_assert_int_eq(ktls_device_query("no-such-device", &offload), -ENODEV);
}
END_TEST

int main(void)
{
    return run_tests("doctor_host",
                     (const TTest *const[]){advice_on_the_tls_module_follows_the_machine,
                                            support_for_rekeying_is_reported, reason_without_io_uring_is_reported,
                                            low_descriptor_limits_are_reported, small_send_buffers_are_reported,
                                            devices_that_could_encrypt_are_reported,
                                            number_of_examined_devices_is_limited, engine_of_each_cipher_is_reported,
                                            cost_in_kernel_and_user_space_is_reported,
                                            engine_that_is_not_built_is_reported,
                                            query_of_a_real_device_gives_a_known_result, NULL});
}
