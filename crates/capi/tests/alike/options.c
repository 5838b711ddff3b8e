/* Every option in every state: what it is, and what becomes of each value. The table comes from the library. */
#include "both.h"

struct option {
    const char *name;
    int level, number;
};
static const struct option options[] = {
#include "options.inc"
};
#define COUNT (sizeof options / sizeof *options)

/* Values that no two TCPs share, or two runs: only their length is told. */
static int is_volatile(const char *name) {
    static const char *const names[] = {"TCP_INFO",   "SO_COOKIE",     "TCP_TIMESTAMP",   "SO_MEMINFO",  "TCP_WINDOW_CLAMP",
                                        "SO_SNDBUF",  "SO_RCVBUF",     "TCP_CONGESTION",  "TCP_CC_INFO", "SO_INCOMING_CPU",
                                        "IP_PROTOCOL", "SO_PEERNAME", "SO_NETNS_COOKIE", "IPV6_PATHMTU", NULL};
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return 1;
    return 0;
}

static void get(int fd, const char *state, const struct option *o, int room) {
    unsigned char value[600];
    memset(value, 0xee, sizeof value);
    socklen_t length = (socklen_t)room;
    int got = fp_getsockopt(fd, o->level, o->number, value, &length);
    printf("%s: get %s with room for %d: %s", state, o->name, room, result(got));
    if (got == 0) {
        printf(", %d bytes", (int)length);
        if (!is_volatile(o->name))
            for (socklen_t i = 0; i < length && i < 16; i++)
                printf(" %02x", value[i]);
    }
    printf("\n");
}

static void set(int fd, const char *state, const struct option *o, int value) {
    int is = 0;
    socklen_t length = sizeof is;
    int set_ = fp_setsockopt(fd, o->level, o->number, &value, sizeof value);
    printf("%s: set %s to %d: %s", state, o->name, value, result(set_));
    if (set_ == 0) {
        int got = fp_getsockopt(fd, o->level, o->number, &is, &length);
        printf(", then %s", result(got));
        int told = strcmp(o->name, "SO_RCVBUF") == 0 || strcmp(o->name, "SO_SNDBUF") == 0 || !is_volatile(o->name);
        if (got == 0 && length == 4 && told)
            printf(" %d", is);
    }
    printf("\n");
}

static void lengths(int fd, const char *state, const struct option *o) {
    int one = 1;
    for (int length = -1; length <= 3; length++)
        printf("%s: set %s of %d bytes: %s\n", state, o->name, length,
               result(fp_setsockopt(fd, o->level, o->number, &one, (socklen_t)length)));
    printf("%s: set %s of null: %s\n", state, o->name, result(fp_setsockopt(fd, o->level, o->number, NULL, 4)));
}

int main(int count, char **words) {
    static const int values[] = {0, 1, INT_MIN, -2, -1, 2, 3, 7, 63, 100, 127, 128, 255, 256, 1000, 4000, 32767, 32768, 65535, 65536, 100000, 1000000, INT_MAX};
    static const int rooms[] = {256, -1, 0, 1, 2, 3, 4, 8, 16};
    static const char *const thorough[] = {"fresh", "listening", "open", "udp"};
    signal(SIGPIPE, SIG_IGN);
    begin_in(count > 1 && strcmp(words[1], "6") == 0 ? AF_INET6 : AF_INET);
    for (int s = 0; states[s]; s++) {
        int all = 0;
        for (int t = 0; t < 4; t++)
            all |= strcmp(thorough[t], states[s]) == 0;
        int fd = in_state(states[s]);
        for (size_t i = 0; i < COUNT; i++)
            for (int r = 0; r < (all ? 9 : 1); r++)
                get(fd, states[s], &options[i], strcmp(options[i].name, "TCP_INFO") == 0 && r == 0 ? 280 : rooms[r]);
        done(fd);
        for (size_t i = 0; i < COUNT; i++) {
            fd = in_state(states[s]);
            for (int v = 0; v < (all ? 23 : 2); v++)
                set(fd, states[s], &options[i], values[v]);
            if (all)
                lengths(fd, states[s], &options[i]);
            done(fd);
        }
    }
    return 0;
}
