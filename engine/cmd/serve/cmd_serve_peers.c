/*
 * engine/cmd/serve/cmd_serve_peers.c - connections of t0-qwen3 serve: none is
 * held for ever.
 *
 * MHD's own limit is of silence: who sends a byte now and then, or reads one,
 * keeps to it.  The loop hangs up on who takes longer as a whole.
 */
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "engine/cmd/serve/cmd_serve_http.h"

struct peer {
	struct peer *next;
	int fd;
	bool heard;	   /* its request has come whole */
	uint64_t until_ns; /* hung up on after that */
};

static struct peer *peer_of(struct MHD_Connection *con)
{
	return MHD_get_connection_info(con, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
		->socket_context;
}

static uint64_t seconds_later(uint64_t seconds)
{
	return time_mono_ns() + seconds * 1000000000;
}

static void peer_add(struct server *s, struct MHD_Connection *con, void **at)
{
	struct peer *p = xcalloc(1, sizeof(*p));

	p->fd = MHD_get_connection_info(con, MHD_CONNECTION_INFO_CONNECTION_FD)
			->connect_fd;
	p->until_ns = seconds_later(s->c->receive);
	p->next = s->peers;
	s->peers = p;
	*at = p;
}

static void peer_remove(struct server *s, struct peer *p)
{
	struct peer **at = &s->peers;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	free(p);
}

void serve_meet_peer(void *ctx, struct MHD_Connection *con, void **at,
		     enum MHD_ConnectionNotificationCode what)
{
	struct server *s = ctx;

	pthread_mutex_lock(&s->lock);
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		peer_add(s, con, at);
	else /* its socket is open until this returns */
		peer_remove(s, *at);
	pthread_mutex_unlock(&s->lock);
}

void serve_limit_peer(struct server *s, struct MHD_Connection *con, bool heard)
{
	struct peer *p = peer_of(con);

	p->heard = heard;
	p->until_ns =
		seconds_later(s->c->receive + (heard ? s->c->timeout : 0));
}

/* Who has not asked for anything yet has not been answered either. */
static void tell_late(const struct peer *p)
{
	json_t *j = serve_error_json(408,
				     "the request has not come whole in the "
				     "time that the server gives (--receive)",
				     NULL);
	char *body = json_dumps(j, JSON_COMPACT);
	struct buf b = { 0 };

	buf_printf(&b,
		   "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
		   "Content-Type: application/json\r\n"
		   "Content-Length: %zu\r\n\r\n%s",
		   strlen(body), body);
	(void)!send(p->fd, b.data, b.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	buf_fini(&b);
	free(body);
	json_decref(j);
}

/* Has it not yet had all that it was sent? */
static bool is_owed(const struct peer *p)
{
	int n = 0;

	return p->heard || (!ioctl(p->fd, SIOCOUTQ, &n) && n);
}

void serve_cut_peers(struct server *s)
{
	/* What the kernel still has for who does not read goes, too. */
	static const struct linger none = { 1, 0 };
	const uint64_t now = time_mono_ns();

	for (struct peer *p = s->peers; p; p = p->next) {
		if (now <= p->until_ns)
			continue;
		if (is_owed(p))
			setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &none,
				   sizeof(none));
		else
			tell_late(p);
		shutdown(p->fd, SHUT_RDWR);
		p->until_ns = UINT64_MAX;
	}
}
