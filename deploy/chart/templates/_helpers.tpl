{{- /* SPDX-License-Identifier: BSD-2-Clause */ -}}
{{- define "shai.metadata" -}}
namespace: {{ .Release.Namespace }}
{{ include "shai.labels" . }}
{{- end -}}

{{- define "shai.labels" -}}
labels:
  app.kubernetes.io/name: shai-operator
  app.kubernetes.io/part-of: shai
{{- end -}}

{{- define "shai.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.tag }}:{{ . }}{{ end }}@{{ .Values.image.digest }}
{{- end -}}
