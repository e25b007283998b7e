// The process's PJRT client: chosen and started at the first use of the device, never before.
#pragma once

#include <string>

#include "pjrt/client.h"

namespace torch_tpu::engine {

// Where plugins are, told by Python before the first use.
void set_plugin_candidates(pjrt::PluginCandidates candidates);
// A setting that must stop the first use (an unknown mode name, say): raised as ValueError by client().
void set_startup_error(std::string message);

// Starts the client if needed. Throws a c10::Error that says what to install or correct, again at each call until it
// succeeds; refuses in a forked child of a process that had started it.
const pjrt::Client& client();
bool client_started();
bool in_bad_fork();
// Throws when this process is a fork of one that had started the client.
void check_fork();

// Devices without starting the client where it can be told: what is_available() and device_count() answer.
int device_count();

}  // namespace torch_tpu::engine
