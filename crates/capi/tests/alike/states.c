/* Every call in every state: what it returns, and what poll(2) shows before and after. */
#include "both.h"

static char buffer[70000];
static volatile int minus_one = -1;

static long call(const char *what, int fd, const char *state) {
    struct sockaddr_storage at;
    socklen_t length = sizeof at;
    int value = -7, one = 1;
    (void)state;
    if (strcmp(what, "bind") == 0)
        return bind_to(fd, SIDE_A, 6111);
    if (strcmp(what, "bind to nobody") == 0)
        return bind_to(fd, 77, 6111);
    if (strcmp(what, "bind to any port") == 0)
        return bind_to(fd, SIDE_A, 0);
    if (strcmp(what, "listen") == 0)
        return fp_listen(fd, 3);
    if (strcmp(what, "accept") == 0)
        return fp_accept(fd, NULL, NULL);
    if (strcmp(what, "accept4 with bad flags") == 0)
        return fp_accept4(fd, NULL, NULL, 77);
    if (strcmp(what, "connect") == 0)
        return connect_to(fd, SIDE_B, PORT);
    if (strcmp(what, "connect twice") == 0)
        return connect_to(fd, SIDE_B, PORT), settle(), connect_to(fd, SIDE_B, PORT);
    if (strcmp(what, "connect thrice") == 0)
        return connect_to(fd, SIDE_B, PORT), settle(), connect_to(fd, SIDE_B, PORT), settle(), connect_to(fd, SIDE_B, PORT);
    if (strcmp(what, "connect to a group") == 0) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(5), .sin_addr.s_addr = htonl(0xe0000001)};
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(5)};
        inet_pton(AF_INET6, "ff02::1", &in6.sin6_addr);
        return domain == AF_INET ? fp_connect(fd, (void *)&in, sizeof in) : fp_connect(fd, (void *)&in6, sizeof in6);
    }
    if (strcmp(what, "connect to nowhere") == 0) {
        struct sockaddr none = {.sa_family = AF_UNSPEC};
        return fp_connect(fd, &none, sizeof none);
    }
    if (strcmp(what, "connect to a path") == 0) {
        struct sockaddr path = {.sa_family = AF_UNIX};
        return fp_connect(fd, &path, sizeof path);
    }
    if (strcmp(what, "connect to too short an address") == 0)
        return at = name(SIDE_B, PORT, &length), fp_connect(fd, (void *)&at, 3);
    if (strcmp(what, "connect to too long an address") == 0)
        return at = name(SIDE_B, PORT, &length), fp_connect(fd, (void *)&at, 129);
    if (strcmp(what, "connect to an address of negative length") == 0)
        return at = name(SIDE_B, PORT, &length), fp_connect(fd, (void *)&at, (socklen_t)1 << 31);
    if (strcmp(what, "connect to null") == 0)
        return fp_connect(fd, NULL, 16);
    if (strcmp(what, "send") == 0)
        return fp_send(fd, "hello", 5, 0);
    if (strcmp(what, "send nothing") == 0)
        return fp_send(fd, "", 0, 0);
    if (strcmp(what, "send twice") == 0)
        return fp_send(fd, "hello", 5, 0), settle(), fp_send(fd, "hello", 5, 0);
    if (strcmp(what, "send to") == 0)
        return at = name(SIDE_B, PORT, &length), fp_sendto(fd, "hello", 5, 0, (void *)&at, length);
    if (strcmp(what, "send from null") == 0)
        return fp_send(fd, NULL, 5, 0);
    if (strcmp(what, "send urgent") == 0)
        return fp_send(fd, "!", 1, MSG_OOB);
    if (strcmp(what, "send fast open") == 0)
        return at = name(SIDE_B, PORT, &length), fp_sendto(fd, "hello", 5, MSG_FASTOPEN, (void *)&at, length);
    if (strcmp(what, "read") == 0)
        return fp_read(fd, buffer, 100);
    if (strcmp(what, "read twice") == 0)
        return fp_read(fd, buffer, 100), fp_read(fd, buffer, 100);
    if (strcmp(what, "read nothing") == 0)
        return fp_read(fd, buffer, 0);
    if (strcmp(what, "recv nothing") == 0)
        return fp_recv(fd, buffer, 0, 0);
    if (strcmp(what, "peek") == 0)
        return fp_recv(fd, buffer, 100, MSG_PEEK);
    if (strcmp(what, "recv some") == 0)
        return fp_recv(fd, buffer, 4, 0);
    if (strcmp(what, "recv all") == 0)
        return fp_recv(fd, buffer, 100, MSG_WAITALL);
    if (strcmp(what, "recv and let go") == 0)
        return fp_recv(fd, NULL, 5, MSG_TRUNC);
    if (strcmp(what, "recv urgent") == 0)
        return fp_recv(fd, buffer, 1, MSG_OOB);
    if (strcmp(what, "recv errors") == 0)
        return fp_recv(fd, buffer, 100, MSG_ERRQUEUE);
    if (strcmp(what, "recv from") == 0) {
        long got = fp_recvfrom(fd, buffer, 100, 0, (void *)&at, &length);
        printf("length %d, ", got == -1 ? -1 : (int)length);
        return got;
    }
    if (strcmp(what, "shutdown reading") == 0)
        return fp_shutdown(fd, SHUT_RD);
    if (strcmp(what, "shutdown writing") == 0)
        return fp_shutdown(fd, SHUT_WR);
    if (strcmp(what, "shutdown both") == 0)
        return fp_shutdown(fd, SHUT_RDWR);
    if (strcmp(what, "shutdown writing twice") == 0)
        return fp_shutdown(fd, SHUT_WR), settle(), fp_shutdown(fd, SHUT_WR);
    if (strcmp(what, "shutdown badly") == 0)
        return fp_shutdown(fd, 3);
    if (strcmp(what, "getsockname") == 0 || strcmp(what, "getpeername") == 0) {
        long got = what[3] == 's' ? fp_getsockname(fd, (void *)&at, &length) : fp_getpeername(fd, (void *)&at, &length);
        if (got == 0) {
            char text[60] = "";
            const void *ip = domain == AF_INET ? (void *)&((struct sockaddr_in *)&at)->sin_addr
                                               : (void *)&((struct sockaddr_in6 *)&at)->sin6_addr;
            int port = ntohs(((struct sockaddr_in *)&at)->sin_port);
            inet_ntop(at.ss_family, ip, text, sizeof text);
            printf("family %d, length %d, %s, port %d, ", at.ss_family, (int)length, text, port < 6000 || port > PORT ? -1 : port);
        }
        return got;
    }
    if (strcmp(what, "getsockname into null") == 0)
        return fp_getsockname(fd, NULL, &length);
    if (strcmp(what, "getsockname with little room") == 0) {
        length = 3;
        long got = fp_getsockname(fd, (void *)&at, &length);
        printf("length %d, ", (int)length);
        return got;
    }
    if (strcmp(what, "error") == 0) {
        length = sizeof value;
        long got = fp_getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &length);
        printf("%s, ", value ? strerrorname_np(value) : "none");
        return got;
    }
    if (strcmp(what, "FIONREAD") == 0 || strcmp(what, "SIOCOUTQ") == 0 || strcmp(what, "SIOCOUTQNSD") == 0 ||
        strcmp(what, "SIOCATMARK") == 0) {
        unsigned long request = what[0] == 'F' ? FIONREAD : strcmp(what, "SIOCOUTQ") == 0 ? TIOCOUTQ
                                : what[4] == 'O' ? 0x894b : 0x8905;
        long got = fp_ioctl(fd, request, &value);
        printf("%d, ", value);
        return got;
    }
    if (strcmp(what, "ioctl of another kind") == 0)
        return fp_ioctl(fd, 0x4321, &value);
    if (strcmp(what, "FIONBIO") == 0)
        return fp_ioctl(fd, FIONBIO, &one);
    if (strcmp(what, "info") == 0) {
        struct tcp_info info;
        length = sizeof info;
        memset(&info, 0, sizeof info);
        long got = fp_getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length);
        printf("state %d, options %d, wscale set %d, ", info.tcpi_state, info.tcpi_options, info.tcpi_snd_wscale > 0);
        return got;
    }
    if (strcmp(what, "many parts") == 0) {
        struct iovec *parts = calloc(1025, sizeof *parts);
        long got = fp_writev(fd, parts, 1025);
        free(parts);
        return got;
    }
    if (strcmp(what, "minus one part") == 0)
        return fp_readv(fd, NULL, minus_one);
    if (strcmp(what, "message of many parts") == 0) {
        struct iovec *parts = calloc(1025, sizeof *parts);
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 1025};
        long got = fp_recvmsg(fd, &message, 0);
        printf("%s, ", result(got));
        got = fp_sendmsg(fd, &message, 0);
        free(parts);
        return got;
    }
    if (strcmp(what, "part of impossible length") == 0) {
        struct iovec part = {buffer, (size_t)-5};
        return fp_writev(fd, &part, 1);
    }
    if (strcmp(what, "message") == 0) {
        struct iovec parts[2] = {{(void *)"ab", 2}, {(void *)"cde", 3}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        return fp_sendmsg(fd, &message, MSG_NOSIGNAL);
    }
    if (strcmp(what, "message with control") == 0) {
        union {
            char bytes[CMSG_SPACE(sizeof(int))];
            struct cmsghdr align;
        } control = {0};
        struct iovec part = {(void *)"ab", 2};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        *CMSG_FIRSTHDR(&message) = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = 99};
        return fp_sendmsg(fd, &message, MSG_NOSIGNAL);
    }
    if (strcmp(what, "message from") == 0) {
        struct iovec part = {buffer, 100};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_name = &at, .msg_namelen = sizeof at, .msg_flags = 0x777};
        long got = fp_recvmsg(fd, &message, 0);
        if (got >= 0)
            printf("name %d, flags %x, ", (int)message.msg_namelen, message.msg_flags);
        return got;
    }
    must(0, what);
    return 0;
}

static const char *const calls[] = {
    "bind", "bind to nobody", "bind to any port", "listen", "accept", "accept4 with bad flags", "connect", "connect twice",
    "connect thrice", "connect to a group", "connect to nowhere", "connect to a path", "connect to too short an address",
    "connect to too long an address", "connect to an address of negative length", "connect to null", "send", "send nothing",
    "send twice", "send to", "send from null", "send urgent", "send fast open", "read", "read twice", "read nothing", "recv nothing",
    "peek", "recv some", "recv all", "recv and let go", "recv urgent", "recv errors", "recv from", "shutdown reading",
    "shutdown writing", "shutdown both", "shutdown writing twice", "shutdown badly", "getsockname", "getpeername",
    "getsockname into null", "getsockname with little room", "error", "FIONREAD", "SIOCOUTQ", "SIOCOUTQNSD", "SIOCATMARK",
    "ioctl of another kind", "FIONBIO", "info", "many parts", "minus one part", "message of many parts",
    "part of impossible length", "message", "message with control", "message from", NULL};

int main(int count, char **words) {
    signal(SIGPIPE, SIG_IGN);
    begin_in(count > 1 && strcmp(words[1], "6") == 0 ? AF_INET6 : AF_INET);
    for (int s = 0; states[s]; s++) {
        for (int c = 0; calls[c]; c++) {
            int fd = in_state(states[s]);
            printf("%s, %s:%s; ", states[s], calls[c], mask(fd));
            long got = call(calls[c], fd, states[s]);
            /* A descriptor is a descriptor. */
            printf("%s;", strncmp(calls[c], "accept", 6) == 0 && got >= 0 ? "accepted" : result(got));
            settle();
            printf("%s\n", mask(fd));
            done(fd);
        }
    }
    return 0;
}
