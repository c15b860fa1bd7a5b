// SPDX-License-Identifier: Apache-2.0
#include "forward/host/ask.h"

#include "forward/host/spawn.h"
#include "forward/socket.h"

#include <pthread.h>

/* One question at a time; the thread that serves the broker brings the answer. */
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;
static struct wire_message answer;
static bool has_answer;

void broker_answered(const struct wire_message *message)
{
	pthread_mutex_lock(&lock);
	answer = *message;
	has_answer = true;
	pthread_cond_signal(&came);
	pthread_mutex_unlock(&lock);
}

int broker_ask(struct wire_message *message)
{
	int r;

	pthread_mutex_lock(&asking);
	r = socket_send(WORKER_SOCKET, message, NULL, 0);
	if (r == 0) {
		pthread_mutex_lock(&lock);
		while (!has_answer)
			pthread_cond_wait(&came, &lock);
		has_answer = false;
		*message = answer;
		r = answer.error;
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_unlock(&asking);
	return r;
}
