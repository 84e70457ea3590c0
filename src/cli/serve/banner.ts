import { type Config, httpUrl } from '#config.ts'
import type { Bootstrapped } from './bootstrapped.ts'

/** Returns the text to print once everything is ready. `bootstrapped` is set if this start created the first account. */
export function formatBanner(config: Config, bootstrapped: Bootstrapped | undefined): string {
  const control = httpUrl(config.controlListen)
  return [
    '',
    '  Inlet is running.',
    '',
    `  Management API   ${control}/v1      described at ${control}/openapi/openapi.json`,
    `  Ingest           ${ingestUrl(config)}/v1/ingest`,
    `  MQTT             ${mqttUrls(config).join(', ')}      any user name, an API key as the password`,
    `  Data             ${config.paths.data}`,
    '',
    ...(bootstrapped === undefined
      ? ['  API key          printed by the first start; `npm run inlet -- keys create` creates another']
      : firstSteps(config, bootstrapped)),
    '',
  ].join('\n')
}

export function ingestUrl(config: Config): string {
  return httpUrl(config.ingestListen, config.tlsCertificateFile === null ? 'http' : 'https')
}

function mqttUrls(config: Config): readonly string[] {
  const scheme = config.tlsCertificateFile === null ? 'mqtt' : 'mqtts'
  const direct = config.mqttListen === null ? [] : [httpUrl(config.mqttListen).replace('http', scheme)]
  return [`${ingestUrl(config).replace('http', 'ws')}/mqtt`, ...direct]
}

function firstSteps(config: Config, { api_key, endpoint_id }: Bootstrapped): readonly string[] {
  // Double quotes let the shell expand the variable.
  const header = api_key === null ? '"X-API-Key: $INLET_BOOTSTRAP_API_KEY"' : `'X-API-Key: ${api_key}'`
  return [
    api_key === null
      ? '  API key          from INLET_BOOTSTRAP_API_KEY'
      : `  API key          ${api_key}   (save it now: it is not shown again)`,
    '',
    '  Send a first event:',
    '',
    `    curl -X POST '${ingestUrl(config)}/v1/ingest?endpoint=${endpoint_id}' \\`,
    `      -H ${header} -H 'Content-Type: application/x-ndjson' \\`,
    `      --data-binary '{"event":"signup","user":{"id":"u-1"},"amount":12.5,"at":"2026-11-20T08:15:30Z"}'`,
    '',
    ...nextSteps(config, endpoint_id),
  ]
}

/** Delivery to a bucket on S3 needs a role that only the bucket's owner can create. */
function nextSteps({ objectStore, paths }: Config, endpointId: string): readonly string[] {
  if (objectStore === 'directory') return [`  Within seconds it is stored as Parquet under ${paths.buckets}/local`]
  return [
    '  It stays on this machine until the endpoint has a destination. docs/destinations.md describes each step:',
    '',
    '    POST  /v1/destinations                  your bucket; the response has the policies for its role',
    '    POST  /v1/destinations/{id}/validate',
    `    PATCH /v1/endpoints/${endpointId}   {"destination_id": …}`,
  ]
}
