/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's linker: pieces that the guest gives, and the image that it fetches. */
#ifndef FORWARD_HOST_LINK_H
#define FORWARD_HOST_LINK_H

#include "forward/host/command.h"

/** link_create() - cuLinkCreate: options of the compiler. The answer is its name. */
CUresult link_create(struct command *command);

/** link_add() - cuLinkAddData: name, kind, the piece (struct wire_buffer), options. The answer: the texts. */
CUresult link_add(struct command *command);

/** link_complete() - cuLinkComplete: name. The answer: the texts, before them how large the image is. */
CUresult link_complete(struct command *command);

/** link_image() - WIRE_LINK_IMAGE: name, where in the image, and where to (struct wire_buffer) */
CUresult link_image(struct command *command);

/** link_destroy() - cuLinkDestroy: name */
CUresult link_destroy(struct command *command);

#endif
