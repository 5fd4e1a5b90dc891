/*
 * Queries a feature of a network device by name, as ethtool -k does: linux/ethtool.h.
 */
#include "tls/ktls_device.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define FEATURE "tls-hw-tx-offload"

static int query_ethtool(int fd, const char *device, void *question)
{
    struct ifreq request = {.ifr_data = question};

    memccpy(request.ifr_name, device, '\0', sizeof(request.ifr_name) - 1);
    return ioctl(fd, SIOCETHTOOL, &request) < 0 ? -errno : 0;
}

/* Returns the number of features named by the kernel, or -errno. */
static int count_features(int fd, const char *device)
{
    struct ethtool_sset_info *question = calloc(1, sizeof(*question) + sizeof(uint32_t));
    int count = -ENOMEM;

    if (!question)
        return count;
    question->cmd = ETHTOOL_GSSET_INFO;
    question->sset_mask = 1ull << ETH_SS_FEATURES;
    count = query_ethtool(fd, device, question);
    if (count == 0)
        count = question->sset_mask ? (int)question->data[0] : -ENOENT;
    free(question);
    return count;
}

/* Returns the index of tls-hw-tx-offload, or -errno. */
static int find_feature(int fd, const char *device, unsigned count)
{
    struct ethtool_gstrings *names = calloc(1, sizeof(*names) + (size_t)count * ETH_GSTRING_LEN);
    int found = -ENOMEM;

    if (!names)
        return found;
    names->cmd = ETHTOOL_GSTRINGS;
    names->string_set = ETH_SS_FEATURES;
    names->len = count;
    found = query_ethtool(fd, device, names);
    if (found == 0)
        found = -ENOENT;
    for (unsigned i = 0; found == -ENOENT && i < count && i < names->len; i++) {
        if (strncmp((const char *)names->data + (size_t)i * ETH_GSTRING_LEN, FEATURE, ETH_GSTRING_LEN) == 0)
            found = (int)i;
    }
    free(names);
    return found;
}

static int read_feature(int fd, const char *device, unsigned feature, struct ktls_device *out_device)
{
    unsigned blocks = feature / 32 + 1;
    struct ethtool_gfeatures *features =
        calloc(1, sizeof(*features) + blocks * sizeof(features->features[0]));
    uint32_t bit = 1u << feature % 32;
    int error = -ENOMEM;

    if (!features)
        return error;
    features->cmd = ETHTOOL_GFEATURES;
    features->size = blocks;
    error = query_ethtool(fd, device, features);
    if (error == 0) {
        const struct ethtool_get_features_block *block = &features->features[blocks - 1];

        out_device->available = (block->available & bit) && !(block->never_changed & bit);
        out_device->active = block->active & bit;
    }
    free(features);
    return error;
}

int ktls_device_query(const char *name, struct ktls_device *out_device)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int count;
    int feature;

    if (fd < 0)
        return -errno;
    count = count_features(fd, name);
    feature = count < 0 ? count : find_feature(fd, name, (unsigned)count);
    if (feature >= 0)
        feature = read_feature(fd, name, (unsigned)feature, out_device);
    close(fd);
    return feature;
}

bool ktls_device_any_active(void)
{
    struct if_nameindex *names = if_nameindex();
    bool active = false;

    for (size_t i = 0; names && names[i].if_index && !active; i++) {
        struct ktls_device device = {false, false};

        active = ktls_device_query(names[i].if_name, &device) == 0 && device.active;
    }
    if (names)
        if_freenameindex(names);
    return active;
}
