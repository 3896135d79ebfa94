/* roost.h - all of roost: include this one. */
#ifndef ROOST_ROOST_H
#define ROOST_ROOST_H

#include <roost/bundle.h>
#include <roost/cluster.h>
#include <roost/config.h>
#include <roost/error.h>
#include <roost/group.h>
#include <roost/launch.h>
#include <roost/part.h>
#include <roost/plan.h>
#include <roost/port.h>
#include <roost/process.h>
#include <roost/registry.h>
#include <roost/render.h>
#include <roost/version.h>
#include <roost/worker.h>

#endif
