/* Who may come in by an entrance (security requirement I1), and how often (J1). Nothing of what a
 * client sends is read for it. */
#ifndef RETRYD_PROXY_ACCESS_H
#define RETRYD_PROXY_ACCESS_H

#include "proxy/entrance.h"
#include "proxy/peer.h"
#include "proxy/reply.h"

struct client;
struct proxy;

/* May this peer say who others are (proxy_protocol)? Anybody on a unix socket: its permissions say
 * who that is. False: it was told, and is to be closed. */
bool access_may_introduce(struct proxy *px, const struct entrance *e, const struct peer *p);
/* The rules clients and users. fd: to ask the kernel whose it is, where that is not known yet.
 * Returns NULL, or what is in the way as static text. */
const char *access_refusal(const struct entrance *e, int fd, struct peer *p);

/* Lets the peer in if the rules and its number of connections allow it: one connection more of it,
 * for peers_leave() when that closes. NULL: it was told, and is to be closed. */
struct peer_count *access_enter(struct proxy *px, const struct entrance *e, int fd, struct peer *p);
/* Where credentials are asked for, each request outside tunnels must bring them, CONNECT too; those
 * inside an opened one have come in with it. False: *refusal is the answer, *why more about it. */
bool access_request(struct client *c, enum reply_kind *refusal, const char **why);
/* May one more line be written about somebody who was not let in? Else it is counted, for the next
 * one. */
bool access_may_tell(struct proxy *px);
/* A line about one that was not let in; many of them come to a few lines a second. */
void access_tell_refused(struct proxy *px, const struct entrance *e, const struct peer *p,
                         const char *why);

#endif
