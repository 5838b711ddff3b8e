/* What the test programs share. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <farpace.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

#define CHECK(ok)                                                                                       \
    do {                                                                                                \
        if (!(ok)) {                                                                                    \
            fprintf(stderr, "%s:%d: %s (errno: %s)\n", __FILE__, __LINE__, #ok, strerror(errno));       \
            exit(1);                                                                                    \
        }                                                                                               \
    } while (0)
#define FAILS(call, error) CHECK((errno = 0, (call) == -1 && errno == (error)))

static inline struct sockaddr_in address(const char *text, int port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    CHECK(inet_pton(AF_INET, text, &at.sin_addr) == 1);
    return at;
}

/* What poll(2) says of a descriptor at once, or after waiting for `events`. */
static inline int polled(int fd, int events, int timeout) {
    struct pollfd p = {.fd = fd, .events = (short)events};
    CHECK(poll(&p, 1, timeout) >= 0);
    return p.revents;
}
