// SPDX-License-Identifier: BSD-2-Clause

//go:build !freebsd

package pipelinetest

const linker = "/lib64"
