import { ingestAddressOf } from '../../api/ingest-address.ts'

/**
 * Programs and configurations that send an event, ready to paste.
 *
 * Law: each works as it is shown. `test/ingest/key-examples.test.ts` runs those whose programs are installed.
 */

type ExampleTarget = {
  /** `ingest_host` of the endpoint. */
  readonly host: string
  /** Whether nodes speak TLS there. */
  readonly isSecure: boolean
  readonly endpointId: string
  readonly key: string
  /** `host:port` of MQTT over TCP, where it is not the usual one. */
  readonly mqttPort?: number
}

type Example = {
  readonly id: string
  readonly label: string
  readonly code: string
  /** Note on the requirements or the behaviour. */
  readonly note?: string
}

export function examplesFor(target: ExampleTarget): readonly Example[] {
  return [
    { id: 'curl', label: 'curl', code: curl(target) },
    { id: 'javascript', label: 'JavaScript', code: javascript(target) },
    { id: 'python', label: 'Python', code: python(target) },
    { id: 'go', label: 'Go', code: go(target) },
    {
      id: 'mosquitto',
      label: 'mosquitto_pub',
      code: mosquitto(target),
      note: 'Needs MQTT in the settings of the endpoint, and INLET_MQTT_LISTEN on the nodes, whose port may be another one. MQTT over WebSocket (/mqtt) needs only the first.',
    },
    { id: 'vector', label: 'Vector', code: vector(target), note: 'Replace my_source with the name of your source.' },
    { id: 'fluent-bit', label: 'Fluent Bit', code: fluentBit(target), note: 'Add the inputs of your pipeline.' },
  ]
}

/** For a public key, in a page of one of its origins. */
export function pageExamplesFor(target: ExampleTarget): readonly Example[] {
  return [
    {
      id: 'beacon',
      label: 'sendBeacon',
      code: beacon(target),
      note: 'Sends while the page is left, and sees no response. It needs no further setting.',
    },
    {
      id: 'fetch',
      label: 'fetch',
      code: javascript(target),
      note: 'Sees the response. The nodes need the origin of the page in INLET_CORS_ORIGINS.',
    },
  ]
}

function curl(target: ExampleTarget): string {
  return `curl -X POST '${ingestAddressOf(target).url}' \\
  -H 'X-API-Key: ${target.key}' \\
  -H 'Content-Type: application/x-ndjson' \\
  --data-binary '{"event":"signup","amount":12.5}'`
}

function javascript(target: ExampleTarget): string {
  return `const response = await fetch('${ingestAddressOf(target).url}', {
  method: 'POST',
  headers: {
    'X-API-Key': '${target.key}',
    'Content-Type': 'application/x-ndjson',
  },
  body: JSON.stringify({ event: 'signup', amount: 12.5 }),
})
console.log(response.status, await response.json())`
}

function beacon(target: ExampleTarget): string {
  const url = new URL(ingestAddressOf(target).url)
  url.searchParams.set('key', target.key)
  return `navigator.sendBeacon(
  '${url}',
  JSON.stringify({ event: 'left', seconds: 12.5 }),
)`
}

function python(target: ExampleTarget): string {
  return `import json
import urllib.request

request = urllib.request.Request(
    "${ingestAddressOf(target).url}",
    data=json.dumps({"event": "signup", "amount": 12.5}).encode(),
    headers={
        "X-API-Key": "${target.key}",
        "Content-Type": "application/x-ndjson",
    },
)
with urllib.request.urlopen(request) as response:
    print(response.status, response.read().decode())`
}

function go(target: ExampleTarget): string {
  return `package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

func main() {
	body := strings.NewReader(\`{"event":"signup","amount":12.5}\`)
	request, err := http.NewRequest("POST", "${ingestAddressOf(target).url}", body)
	if err != nil {
		panic(err)
	}
	request.Header.Set("X-API-Key", "${target.key}")
	request.Header.Set("Content-Type", "application/x-ndjson")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	receipt, err := io.ReadAll(response.Body)
	fmt.Println(response.Status, string(receipt), err)
}`
}

function mosquitto(target: ExampleTarget): string {
  const { name, isNamed, isSecure } = ingestAddressOf(target)
  const { endpointId, key, mqttPort = isSecure ? 8883 : 1883 } = target
  const naming = isNamed ? [] : [`-D connect user-property endpoint ${endpointId}`]
  const way = [...(isSecure ? ['--tls-use-os-certs'] : []), ...naming].join(' ')
  return `mosquitto_pub -h ${name} -p ${mqttPort} -V mqttv5 \\
  ${way} \\
  -i sensor-7 -u sensor-7 -P '${key}' \\
  -q 1 -t plant/7/temperature -m '{"event":"reading","amount":21.5}'`
}

function vector(target: ExampleTarget): string {
  return `sinks:
  inlet:
    type: http
    inputs: ["my_source"]
    uri: "${ingestAddressOf(target).url}"
    encoding:
      codec: json
    framing:
      method: newline_delimited
    compression: gzip
    request:
      headers:
        X-API-Key: "${target.key}"
    acknowledgements:
      enabled: true`
}

function fluentBit(target: ExampleTarget): string {
  const { name, port, path, isSecure } = ingestAddressOf(target)
  return `pipeline:
  outputs:
    - name: http
      match: '*'
      host: ${name}
      port: ${port}
      uri: ${path}
      tls: ${isSecure ? 'on' : 'off'}
      format: json_lines
      json_date_format: iso8601
      compress: gzip
      header:
        - X-API-Key ${target.key}
      retry_limit: no_limits`
}

/** For keys that do not send data. */
export function managementExample(origin: string, key: string, scope: string): string {
  return `TOKEN=$(curl -s '${origin}/v1/token/exchange' \\
  -H 'Content-Type: application/json' \\
  -d '{"api_key":"${key}","scope":"${scope}"}' | jq -r .access_token)
curl -s '${origin}/v1/endpoints' -H "Authorization: Bearer $TOKEN" | jq .`
}
