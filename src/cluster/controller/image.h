/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service that is an image: what its job does on a node to run it as a container.
 */
#ifndef CLUSTER_IMAGE_H
#define CLUSTER_IMAGE_H

#include "cluster/controller/service.h"

/**
 * image_is_name() - may it be an image's name?
 *
 * Whatever podman may be asked to run: "serve:2", "registry.example/team/serve@sha256:...", and
 * "oci:/images/serve" for what lies on the nodes. It is podman that looks for it; here it is only
 * seen to be one word, and no option.
 */
bool image_is_name(const char *text);

/**
 * image_script() - the job of an instance of such a service
 * @instance:	its name, such as "web.0"
 *
 * Return: a shell script, which the caller frees; NULL without memory.
 */
char *image_script(const struct service *service, const char *instance);

#endif
