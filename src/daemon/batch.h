/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The batch engine that has started a job: it is told to stop it, to let it go, to start it
 * elsewhere or to end it, by a program that knows how.
 *
 *	PROGRAM notify JOB TEXT
 *	PROGRAM suspend|resume JOB
 *	PROGRAM evict|kill JOB PEAK	the most that it held of a device, in MiB
 *
 * The program answers with one line of what it did, or of why not. Nothing here waits for it.
 */
#ifndef DAEMON_BATCH_H
#define DAEMON_BATCH_H

#include "base/base.h"

#include <stdbool.h>
#include <systemd/sd-event.h>

#define BATCH_WORDS 100

/**
 * typedef batch_fn - the program has ended
 * @words:	its line
 */
typedef void (*batch_fn)(bool good, const char *words, void *userdata);

struct batch_call;

/**
 * struct batch - the engine
 * @program:	by its path, or its name; NULL or "" where there is none
 * @loop:	NULL where nobody listens for answers
 */
struct batch {
	const char *program;
	sd_event *loop;
	struct batch_call *calls;
};

/**
 * batch_tell() - start the program
 * @text:	may be NULL
 * @fn:		called when it has ended; NULL where that does not matter
 *
 * Return: 0, -EOPNOTSUPP where there is no engine, or a fault; @fn is then not called.
 */
int batch_tell(struct batch *batch, const char *word, uint32_t job, const char *text, batch_fn fn,
	       void *userdata);

/**
 * batch_forget() - do not call back for this one any more; its programs run on
 */
void batch_forget(struct batch *batch, const void *userdata);

/**
 * batch_record() - a line that says a job was suspended, for batch_resume_recorded(); the caller frees it
 */
char *batch_record(uint32_t job);

/**
 * batch_resume_recorded() - let go the job that a record tells of, if it does
 */
void batch_resume_recorded(struct batch *batch, const char *record);

void batch_done(struct batch *batch);

#endif
