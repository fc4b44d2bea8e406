// SPDX-License-Identifier: BSD-2-Clause

//go:build !freebsd

package main

// defaultSocket is the monitor's socket if no flag or variable names another.
const defaultSocket = "/run/shai/monitor.sock"
