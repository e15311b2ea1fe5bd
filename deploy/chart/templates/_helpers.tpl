{{- define "quorate.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* Labels of an object; the argument is a list: root context, component. */ -}}
{{- define "quorate.labels" -}}
app.kubernetes.io/name: quorate
app.kubernetes.io/component: {{ index . 1 }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
{{- end -}}

{{- /* Labels by which pods are selected. `app: agent` is how the controller finds the agents. */ -}}
{{- define "quorate.selector" -}}
app: {{ . }}
app.kubernetes.io/name: quorate
app.kubernetes.io/component: {{ . }}
{{- end -}}

{{- define "quorate.extenderUrl" -}}
{{- if eq .Values.extender.mode "in-process" -}}
in-process
{{- else if eq .Values.extender.mode "deployment" -}}
http://quorate-extender.{{ .Release.Namespace }}.svc:8099
{{- else -}}
{{ required "extender.url is required when extender.mode is external" .Values.extender.url }}
{{- end -}}
{{- end -}}
