/* roost.h - what a program needs to plan, run and call: include this one.
 *
 * Engines and bindings of other languages also use the headers in <roost/engine/>. */
#ifndef ROOST_ROOST_H
#define ROOST_ROOST_H

#include <roost/bundle.h>
#include <roost/cluster.h>
#include <roost/config.h>
#include <roost/error.h>
#include <roost/group.h>
#include <roost/launch.h>
#include <roost/lines.h>
#include <roost/plan.h>
#include <roost/port.h>
#include <roost/prune.h>
#include <roost/render.h>
#include <roost/version.h>
#include <roost/worker.h>

#endif
