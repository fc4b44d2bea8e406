// SPDX-License-Identifier: BSD-2-Clause

package pipelinetest

const linker = "/libexec"
