/* farpace: a TCP/IP stack for C programs.
 *
 * Two ways to have one: fp_stack_tun() brings it up on a TUN device, with a thread of its own; farpace_host_create() makes a
 * host whose packets and time the program gives. The calls of BSD are the same for both.
 *
 * Descriptors are real ones: poll(2), epoll(7), select(2), fcntl(2) and close(2) of the system work on them. Bytes go through
 * fp_read() and the like alone, not through read(2). What each call returns, and errno, is as in the manual of the call
 * without its prefix; SIGPIPE is never raised.
 *
 * Every pointer that is not null must point to as many bytes as the call says. Calls may come from any thread. */
#ifndef FARPACE_H
#define FARPACE_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of farpace's own. FP_SETTINGS sets how connections are, in words with spaces between them: "linux ecn=on sack=off
 * timestamps=on window_scale=on mtu_probing=always congestion=cubic ack_control=safe ack_requests=rtt+flight-end pacing=on
 * cookies=off". A word without = names the profile; docs/scenarios.md has the keys of a sender or receiver. On a socket that
 * listens they hold for connections from then on. Reading gives the words that differ from the default. */
#define SOL_FARPACE 0x4650
#define FP_SETTINGS 1
/* TCP_INFO as a JSON object, with the names of linux/tcp.h without their tcpi_; only to be read. */
#define FP_INFO 2

typedef struct fp_stack fp_stack;
typedef struct farpace_host farpace_host;

/* A stack on a new TUN device. The kernel has the address `kernel` ("10.77.0.1/24") on it, the stack `address`
 * ("10.77.0.2"). `profile` ("modern", "farpace", ...) may be null, or words as for FP_SETTINGS. Null and errno: it cannot be had. */
fp_stack *fp_stack_tun(const char *name, const char *kernel, const char *address, const char *profile);
/* A stack as lines of name=value say: one of tun, tap and iface names the device, or wireguard a file of wg-quick's form (mode 600);
 * address (with the bits of its network) at least once; kernel (as in fp_stack_tun), gateway, mac (needed on tap and iface), mtu, profile (words as for FP_SETTINGS), pcap (a file for what passes),
 * control (the name under which `farpace ss` shows its sockets), descriptors (the library's own descriptors begin at this
 * number). */
fp_stack *fp_stack_open(const char *words);
/* Why the last stack could not be had, in words: as much as there is room for, with a zero at the end. Its length. */
ssize_t fp_stack_reason(char *buffer, size_t room);
/* Ends it: its sockets fail with ENETDOWN, its device is gone. This and fp_stack_finish release the stack, also when they
* return -1 (except with EPERM, in another process than its own): no call may use it afterwards. */
int fp_stack_stop(fp_stack *stack);
/* Calls that wait in sockets of the stack now, in any thread, fail with EINTR; but poll(2) and the like go on. */
int fp_stack_interrupt(const fp_stack *stack);
/* The same in good order, for the end of a program: closes all its sockets, and waits until their peers have what was written,
 * at most so long. ETIMEDOUT: not all of them. */
int fp_stack_finish(fp_stack *stack, int milliseconds);

/* Other processes. A child of fork(2) has its parent's sockets, and can make more: each call asks the parent, whose thread is the
 * stack; of several stacks it is the one that was made last. fp_stack_share() lets the programs that children run inherit them as
 * well: fp_stack_join() with the words of fp_stack_open() finds the stack there (ENOENT: nobody has left one), and
 * fp_socket_inherited() makes a descriptor a socket again (EBADF: it is none). The other calls on stacks fail with EPERM there.
 * fp_stack_wait() closes the sockets of this process and waits until no other process uses the stack, at most so long (-1: as long as
 * it takes). ETIMEDOUT: some do. */
int fp_stack_share(const fp_stack *stack);
int fp_stack_join(const char *words);
int fp_socket_inherited(int fd);
int fp_stack_wait(const fp_stack *stack, int milliseconds);

/* A socket of the stack that was made last, or of a certain one: AF_INET, AF_INET6; SOCK_STREAM, SOCK_DGRAM, perhaps with
 * SOCK_NONBLOCK and SOCK_CLOEXEC. */
int fp_socket(int domain, int type, int protocol);
int fp_stack_socket(const fp_stack *stack, int domain, int type, int protocol);
/* A socket of the stack that was made last, with the descriptor `fd`; what that was before is closed. */
int fp_socket_at(int fd, int domain, int type, int protocol);

int fp_bind(int fd, const void *address, socklen_t length);
int fp_listen(int fd, int backlog);
int fp_accept(int fd, void *address, socklen_t *length);
int fp_accept4(int fd, void *address, socklen_t *length, int flags);
int fp_connect(int fd, const void *address, socklen_t length);
ssize_t fp_read(int fd, void *buffer, size_t length);
ssize_t fp_readv(int fd, const struct iovec *parts, int count);
ssize_t fp_recv(int fd, void *buffer, size_t length, int flags);
ssize_t fp_recvfrom(int fd, void *buffer, size_t length, int flags, void *address, socklen_t *address_length);
ssize_t fp_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t fp_write(int fd, const void *buffer, size_t length);
ssize_t fp_writev(int fd, const struct iovec *parts, int count);
ssize_t fp_send(int fd, const void *buffer, size_t length, int flags);
ssize_t fp_sendto(int fd, const void *buffer, size_t length, int flags, const void *address, socklen_t address_length);
ssize_t fp_sendmsg(int fd, const struct msghdr *message, int flags);
int fp_shutdown(int fd, int how);
int fp_close(int fd);
int fp_getsockname(int fd, void *address, socklen_t *length);
int fp_getpeername(int fd, void *address, socklen_t *length);
int fp_setsockopt(int fd, int level, int name, const void *value, socklen_t length);
int fp_getsockopt(int fd, int level, int name, void *value, socklen_t *length);
/* One more descriptor of the same socket, which is closed with the last of them. The system's own dup(2) makes descriptors that
 * the calls here do not know. */
int fp_dup(int fd);
int fp_dup2(int fd, int at);
int fp_dup3(int fd, int at, int flags);
/* F_GETFL, F_SETFL, F_GETFD, F_SETFD, F_DUPFD, F_DUPFD_CLOEXEC. */
int fp_fcntl(int fd, int command, long value);
/* FIONREAD (SIOCINQ), TIOCOUTQ (SIOCOUTQ), SIOCOUTQNSD, SIOCATMARK, FIONBIO. */
int fp_ioctl(int fd, unsigned long request, int *value);
/* As poll(2), but lets the time of a farpace_host pass while it waits, and counts its timeout by that. */
int fp_poll(struct pollfd *fds, nfds_t count, int timeout);
/* With _GNU_SOURCE, as those of the system. */
struct mmsghdr;
struct timespec;
int fp_recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags, const struct timespec *timeout);
int fp_sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags);

/* A host that takes and gives IP packets of up to `mtu` bytes (0: 1500; 68 at least, 1280 with IPv6). All its random numbers
 * follow from `seed`: the same calls give the same bytes. `profile` may be null, or words as for FP_SETTINGS. It has no
 * thread; calls from several are put in order. Null and errno: it cannot be had, and fp_stack_reason() says why. */
farpace_host *farpace_host_create(const char *address, uint64_t seed, const char *profile, uint16_t mtu);
/* The same with Ethernet frames. `mac` has six bytes, `prefix` is that of the network around it; `gateway` may be null. */
farpace_host *farpace_host_create_ethernet(const char *address, uint64_t seed, const char *profile, uint16_t mtu,
                                           const uint8_t *mac, uint8_t prefix, const char *gateway);
/* Ends it; its sockets fail with ENETDOWN. */
void farpace_host_destroy(farpace_host *host);
/* What its connections may hold (16 GiB at first), and what they hold. docs/limits.md says what happens when it gets short. */
int farpace_host_set_memory(const farpace_host *host, uint64_t bytes);
int64_t farpace_host_memory(const farpace_host *host);
/* A packet comes. Time is in nanoseconds from any origin; it never goes backwards. */
int farpace_host_input(const farpace_host *host, const void *packet, size_t length, uint64_t now_ns);
/* What is due happens, and the next packet that goes out is put into `buffer`: its length, or 0. Call it until it gives 0. */
ssize_t farpace_host_output(const farpace_host *host, void *buffer, size_t capacity, uint64_t now_ns);
/* The same, and when the packet left, which may be before `now_ns`; `sent_ns` may be null. EMSGSIZE: the buffer is too small, and
 * the packet waits. */
ssize_t farpace_host_output_at(const farpace_host *host, void *buffer, size_t capacity, uint64_t now_ns,
                               uint64_t *sent_ns);
/* Time is now_ns, and timers that have come due meanwhile fire now, as in a program that was busy; the other calls fire each when
 * it was due. */
int farpace_host_oversleep(const farpace_host *host, uint64_t now_ns);
/* When farpace_host_output() is to be called next, if no packet comes and no socket is used before; UINT64_MAX: never. */
uint64_t farpace_host_deadline(const farpace_host *host);
/* A socket of the host. */
int farpace_host_socket(const farpace_host *host, int domain, int type, int protocol);
/* How calls on blocking sockets of the host wait for `events` (POLLIN, POLLOUT) of `fd`: `wait` lets time pass and packets
 * flow, and returns 0; anything else ends the call with EINTR. Null: they fail with EAGAIN. */
int farpace_host_set_wait(const farpace_host *host, int (*wait)(void *user, int fd, short events), void *user);

#ifdef __cplusplus
}
#endif
#endif
