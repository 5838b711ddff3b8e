/* What poll(2) and an edge-triggered epoll(7) show, from state to state; and what MSG_MORE and TCP_CORK hold back. */
#include "both.h"

static const char *bits(uint32_t events) {
    static char text[4][100];
    static int turn;
    char *into = text[turn++ % 4];
    snprintf(into, 100, "%s%s%s%s%s%s", events & POLLIN ? " IN" : "", events & POLLPRI ? " PRI" : "",
             events & POLLOUT ? " OUT" : "", events & POLLRDHUP ? " RDHUP" : "", events & POLLERR ? " ERR" : "",
             events & POLLHUP ? " HUP" : "");
    return into;
}

/* The steps of one socket: its mask, and what an edge-triggered epoll says of it once. */
static int watcher = -1, watched = -1;
static const char *story;

static void watch(int fd) {
    struct epoll_event all = {.events = EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.fd = fd};
    watcher = epoll_create1(EPOLL_CLOEXEC), watched = fd;
    must(watcher >= 0 && epoll_ctl(watcher, EPOLL_CTL_ADD, fd, &all) == 0, "epoll");
}
static void step_is(const char *what) {
    struct epoll_event event;
    settle();
    int n = epoll_wait(watcher, &event, 1, 0);
    printf("%s, %s: poll%s; edge%s\n", story, what, mask(watched), n == 1 ? bits(event.events) : " none");
}
static void end(void) {
    close(watcher);
    done(watched);
}
static int taken(int fd, size_t most) {
    static char buffer[100000];
    return (int)fp_recv(fd, buffer, most, MSG_DONTWAIT);
}
static void sent(int fd, const char *text, int flags) {
    must(fp_send(fd, text, strlen(text), flags) == (ssize_t)strlen(text), "send");
}

static void states_seen(void) {
    story = "states";
    for (int s = 0; states[s]; s++) {
        int fd = in_state(states[s]);
        printf("%s, %s: poll%s\n", story, states[s], mask(fd));
        done(fd);
    }
}

static void listening(void) {
    story = "listener";
    int fd = listener(SIDE_A, 6700), first, second;
    watch(fd), step_is("begins");
    first = tcp(SIDE_B), must(connect_to(first, SIDE_A, 6700) == -1, "connect"), step_is("one waits");
    second = tcp(SIDE_B), must(connect_to(second, SIDE_A, 6700) == -1, "connect"), step_is("two wait");
    int one = fp_accept4(fd, NULL, NULL, SOCK_NONBLOCK);
    step_is("one is accepted");
    int two = fp_accept4(fd, NULL, NULL, SOCK_NONBLOCK);
    must(one >= 0 && two >= 0, "accept"), step_is("both are accepted");
    reset(one), reset(two), reset(first), reset(second);
    end();
}

static void connecting(void) {
    story = "connecting";
    if (server < 0)
        server = listener(SIDE_B, PORT);
    int fd = tcp(SIDE_A);
    must(connect_to(fd, SIDE_B, PORT) == -1, "connect");
    watch(fd), expect(fd, POLLOUT), step_is("open");
    peer = fp_accept4(server, NULL, NULL, SOCK_NONBLOCK);
    must(peer >= 0, "accept"), step_is("accepted");
    end();
    story = "refused";
    fd = tcp(SIDE_A);
    must(connect_to(fd, SIDE_B, 9) == -1, "connect");
    watch(fd), expect(fd, POLLOUT), step_is("refused");
    int error = 0;
    socklen_t length = sizeof error;
    must(fp_getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == ECONNREFUSED, "error");
    step_is("told");
    end();
}

static void reading(void) {
    story = "reading";
    int fd = open_pair();
    watch(fd), step_is("begins"), step_is("again");
    sent(peer, "some", 0), step_is("data"), step_is("data, again");
    sent(peer, "more", 0), step_is("more data");
    must(taken(fd, 3) == 3, "read"), step_is("read in part");
    sent(peer, "still", 0), step_is("data behind what was not read");
    must(taken(fd, 1000) == 10 && taken(fd, 1) == -1, "read"), step_is("read empty");
    sent(peer, "x", 0), step_is("data once more");
    must(fp_shutdown(peer, SHUT_WR) == 0, "shutdown"), step_is("the end behind data");
    must(taken(fd, 9) == 1, "read"), step_is("read up to the end");
    must(taken(fd, 9) == 0, "end"), step_is("read the end");
    end();
}

static void ending(void) {
    story = "we end first";
    int fd = open_pair();
    watch(fd), step_is("begins");
    must(fp_shutdown(fd, SHUT_WR) == 0, "shutdown"), step_is("shut");
    sent(peer, "late", 0), step_is("data");
    must(taken(fd, 9) == 4, "read"), step_is("read");
    must(fp_shutdown(peer, SHUT_WR) == 0, "shutdown"), step_is("both have ended");
    must(taken(fd, 9) == 0, "end"), step_is("read the end");
    end();
    story = "the peer ends first";
    fd = open_pair();
    watch(fd), step_is("begins");
    must(fp_shutdown(peer, SHUT_WR) == 0, "shutdown"), step_is("the end");
    sent(fd, "answer", 0), step_is("answered");
    must(fp_shutdown(fd, SHUT_WR) == 0, "shutdown"), step_is("both have ended");
    end();
    story = "deaf";
    fd = open_pair();
    watch(fd), step_is("begins");
    must(fp_shutdown(fd, SHUT_RD) == 0, "shutdown"), step_is("shut for reading");
    must(fp_shutdown(fd, SHUT_WR) == 0, "shutdown"), step_is("shut for both");
    end();
}

static void breaking(void) {
    story = "reset";
    int fd = open_pair();
    watch(fd), step_is("begins");
    reset(peer), peer = -1, step_is("reset");
    must(taken(fd, 9) == -1 && errno == ECONNRESET, "reset"), step_is("told");
    must(taken(fd, 9) == 0, "end"), step_is("read the end");
    end();
    story = "reset behind data";
    fd = open_pair();
    watch(fd), step_is("begins");
    sent(peer, "data", 0), step_is("data");
    reset(peer), peer = -1, step_is("reset");
    end();
    story = "reset behind the end";
    fd = open_pair();
    watch(fd), step_is("begins");
    must(fp_shutdown(peer, SHUT_WR) == 0, "shutdown"), step_is("the end");
    reset(peer), peer = -1, step_is("reset");
    end();
}

static void urgent(void) {
    story = "urgent";
    int fd = open_pair();
    char byte;
    watch(fd), step_is("begins");
    sent(peer, "!", MSG_OOB), step_is("urgent");
    must(fp_recv(fd, &byte, 1, MSG_OOB) == 1, "urgent"), step_is("read it");
    sent(peer, "data", 0), step_is("data behind it");
    sent(peer, "ab!", MSG_OOB), step_is("urgent again");
    must(taken(fd, 100) > 0, "read"), step_is("read to the mark");
    end();
}

static void writing(void) {
    story = "writing";
    int fd = open_pair();
    static char much[1 << 20];
    watch(fd), step_is("begins");
    while (fp_send(fd, much, sizeof much, MSG_DONTWAIT) > 0)
        settle();
    must(errno == EAGAIN, "full"), step_is("full");
    for (int quiet = 0; quiet < 20;) {
        quiet = taken(peer, sizeof much) > 0 ? 0 : quiet + 1;
        settle();
    }
    step_is("room again");
    end();
}

static void datagrams(void) {
    story = "udp";
    int fd = side_socket(SIDE_A, domain, SOCK_DGRAM | SOCK_NONBLOCK, 0), other = side_socket(SIDE_B, domain, SOCK_DGRAM, 0);
    must(bind_to(fd, SIDE_A, 6800) == 0 && bind_to(other, SIDE_B, 6801) == 0, "bind");
    must(connect_to(fd, SIDE_B, 6801) == 0 && connect_to(other, SIDE_A, 6800) == 0, "connect");
    watch(fd), step_is("begins");
    sent(other, "one", 0), step_is("one");
    sent(other, "two", 0), step_is("two");
    must(taken(fd, 100) == 3, "read"), step_is("read one");
    must(taken(fd, 100) == 3, "read"), step_is("read both");
    must(fp_send(other, "", 0, 0) == 0, "send"), step_is("an empty one");
    must(taken(fd, 100) == 0, "read"), step_is("read it");
    fp_close(other);
    sent(fd, "to nobody", 0), step_is("refused");
    must(taken(fd, 100) == -1 && errno == ECONNREFUSED, "refused"), step_is("told");
    must(fp_shutdown(fd, SHUT_RD) == 0, "shutdown"), step_is("shut for reading");
    must(fp_shutdown(fd, SHUT_WR) == 0, "shutdown"), step_is("shut for both");
    end();
}

static int waits(void) {
    int n = -1;
    settle();
    must(fp_ioctl(peer, FIONREAD, &n) == 0, "ioctl");
    return n;
}
static void cork(int fd, int on) { must(fp_setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on) == 0, "cork"); }
static int segments(int fd) {
    struct tcp_info info;
    unsigned char all[256] = {0};
    socklen_t length = sizeof all;
    must(fp_getsockopt(fd, IPPROTO_TCP, TCP_INFO, all, &length) == 0 && length >= sizeof info, "info");
    uint32_t n;
    memcpy(&n, all + 156, sizeof n); /* tcpi_data_segs_out */
    return (int)n;
}

static void holding(void) {
    int on = 1;
    for (int nodelay = 0; nodelay < 2; nodelay++) {
        const char *how = nodelay ? "nodelay" : "nagle";
        int fd = open_pair();
        must(fp_setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, sizeof on) == 0, "nodelay");
        sent(fd, "abc", MSG_MORE), printf("more, %s: %d wait after a part\n", how, waits());
        sent(fd, "de", MSG_MORE), printf("more, %s: %d wait after two parts\n", how, waits());
        sent(fd, "f", 0), printf("more, %s: %d wait after the last, segments %d\n", how, waits(), segments(fd));
        static char much[4000];
        must(fp_send(fd, much, sizeof much, MSG_MORE) == sizeof much, "send");
        printf("more, %s: %d wait of 4006\n", how, waits());
        sent(fd, "x", 0), printf("more, %s: %d wait of 4007, segments %d\n", how, waits(), segments(fd));
        sent(fd, "y", MSG_MORE);
        must(fp_shutdown(fd, SHUT_WR) == 0, "shutdown"), printf("more, %s: %d wait after the end\n", how, waits());
        done(fd);
        fd = open_pair();
        must(fp_setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, sizeof on) == 0, "nodelay");
        cork(fd, 1);
        sent(fd, "abc", 0), printf("cork, %s: %d wait after a part\n", how, waits());
        sent(fd, "def", 0), printf("cork, %s: %d wait after two parts\n", how, waits());
        cork(fd, 0), printf("cork, %s: %d wait without the cork, segments %d\n", how, waits(), segments(fd));
        cork(fd, 1);
        must(fp_send(fd, much, 2000, 0) == 2000, "send");
        printf("cork, %s: %d wait of 2006\n", how, waits());
        pass(400), printf("cork, %s: %d wait of 2006 after a while\n", how, waits());
        sent(fd, "z", 0);
        must(fp_shutdown(fd, SHUT_WR) == 0, "shutdown"), printf("cork, %s: %d wait after the end\n", how, waits());
        done(fd);
        fd = open_pair();
        cork(fd, 1), sent(fd, "abc", 0);
        must(fp_setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "nodelay");
        printf("cork and then nodelay: %d wait\n", waits());
        cork(fd, 0), printf("cork and then nodelay: %d wait without the cork\n", waits());
        done(fd);
    }
}

int main(int count, char **words) {
    signal(SIGPIPE, SIG_IGN);
    begin_in(count > 1 && strcmp(words[1], "6") == 0 ? AF_INET6 : AF_INET);
    states_seen(), listening(), connecting(), reading(), ending(), breaking(), urgent(), writing(), datagrams(), holding();
    return 0;
}
