// SPDX-License-Identifier: BSD-2-Clause

package main

// defaultSocket is the monitor's socket if no flag or variable names another.
const defaultSocket = "/var/run/shai/monitor.sock"
