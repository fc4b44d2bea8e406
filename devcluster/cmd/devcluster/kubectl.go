// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"

	"shai.dev/devcluster/internal/directory"
)

// kubectl runs kubectl's own command line. It ends the process if it fails.
func kubectl(arguments []string) {
	os.Args = append([]string{"kubectl"}, arguments...) // kubectl reads them here
	// The verbosity also applies to messages from before the flags are parsed.
	_, _ = logs.GlogSetter(kubectlcmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectlcmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}

// chooseCluster makes kubectl use the devcluster, unless the user has named a cluster.
func chooseCluster() {
	const variable = "KUBECONFIG"
	if os.Getenv(variable) != "" {
		return
	}
	d, err := directory.Resolve("", os.Getenv)
	if err != nil {
		return // kubectl then reports that no cluster is configured
	}
	os.Setenv(variable, d.Kubeconfig())
}
