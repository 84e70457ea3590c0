import { baseUrlOf, certificateSourcesOf, controlOf, localIngestUrl, localUrl } from '#config/addresses.ts'
import type { Config } from '#config/config.ts'
import { ownCommand } from '#lib/own-command.ts'
import type { Paint } from '#lib/text-lines.ts'
import type { Bootstrapped } from './bootstrapped.ts'
import type { FirstKey, FirstLink } from './first-key.ts'

export type BannerOptions = {
  readonly config: Config
  /** The processes that run. */
  readonly children: readonly string[]
  /** Set if this start created the first account. */
  readonly bootstrapped: Bootstrapped | undefined
  /** Set if this start created the first key. */
  readonly firstKey: FirstKey | undefined
  /** Set as long as nobody has signed in to the console. */
  readonly firstLink: FirstLink | undefined
  readonly paint: Paint
}

type Row = { readonly label: string; readonly value: string; readonly notes?: readonly string[] }

const createKey = ownCommand('keys create --name laptop --scope ingest')

/** Returns the text to print once everything is ready: where to go, and at the first start what to send. */
export function formatBanner({ config, children, bootstrapped, firstKey, firstLink, paint }: BannerOptions): string {
  const { management_api, root_certificate, control, ingest, mqtt, data } = describeStart({ config, children, bootstrapped })
  const rows: readonly Row[] = [
    ...(management_api === undefined ? [{ label: 'Control', value: control }] : consoleRows(management_api, firstLink)),
    { label: 'Ingest', value: ingest },
    { label: 'MQTT', value: mqtt.join(', '), notes: ['any user name, an API key as the password'] },
    ...(root_certificate === undefined
      ? []
      : [{ label: 'Root certificate', value: root_certificate, notes: ['clients have to trust it: curl --cacert'] }]),
    { label: 'Data', value: data },
    ...(management_api === undefined ? [] : [keyRow(bootstrapped, firstKey)]),
  ]
  return [
    '',
    `  ${paint('bold', 'Inlet is running.')}`,
    '',
    ...rows.flatMap(({ label, value, notes = [] }) => [
      `  ${paint('dim', label.padEnd(16))} ${paint('cyan', value)}`,
      ...notes.map((note) => `${' '.repeat(19)}${paint('dim', note)}`),
    ]),
    '',
    ...(bootstrapped === undefined ? [] : firstSteps(config, bootstrapped, firstKey)),
  ].join('\n')
}

function consoleRows(url: string, firstLink: FirstLink | undefined): readonly Row[] {
  const api = { label: 'Management API', value: `${url}v1`, notes: [`described at ${url}openapi/`] }
  if (firstLink === undefined)
    return [{ label: 'Console', value: url, notes: [`locked out? ${ownCommand('sign-in-link')}`] }, api]
  const notes =
    firstLink.url === undefined ? ['This file has a link that signs you in, once.'] : ['Open it to sign in: it works once.']
  return [{ label: 'Console', value: firstLink.url ?? firstLink.path, notes }, api]
}

/** Returns what the banner says, as the fields of a log line: without the key. */
export function describeStart({ config, children, bootstrapped }: Pick<BannerOptions, 'config' | 'children' | 'bootstrapped'>) {
  return {
    management_api: children.includes('control') ? `${baseUrlOf(config)}/` : undefined,
    root_certificate: rootCertificate(config),
    control: controlOf(config).url,
    ingest: `${localIngestUrl(config)}/v1/ingest`,
    mqtt: mqttUrls(config),
    data: config.paths.data,
    first_endpoint: bootstrapped?.endpoint_id,
  }
}

/** Returns the path of the root that clients have to trust, if it is one of this installation. */
function rootCertificate({ certificates, paths }: Config): string | undefined {
  return certificates === 'development' ? paths.developmentCa : undefined
}

function mqttUrls(config: Config): readonly string[] {
  const scheme = certificateSourcesOf(config).ingest === null ? 'mqtt' : 'mqtts'
  const direct = config.mqttListen === null ? [] : [localUrl(config.mqttListen, null).replace('http', scheme)]
  return [`${localIngestUrl(config).replace('http', 'ws')}/mqtt`, ...direct]
}

function keyRow(bootstrapped: Bootstrapped | undefined, firstKey: FirstKey | undefined): Row {
  const label = 'API key'
  if (bootstrapped === undefined) return { label, value: createKey, notes: ['creates one; the first start created another'] }
  if (firstKey === undefined) return { label, value: 'the one in INLET_BOOTSTRAP_API_KEY', notes: ['another one:', createKey] }
  if (firstKey.key !== undefined)
    return { label, value: firstKey.key, notes: ['Save it now: it is not shown again. Another one:', createKey] }
  return {
    label,
    value: firstKey.path,
    notes: ['This file has it: delete it once you have saved the key. Another one:', createKey],
  }
}

function firstSteps(config: Config, bootstrapped: Bootstrapped, firstKey: FirstKey | undefined): readonly string[] {
  const { endpoint_id } = bootstrapped
  const header = keyHeader(firstKey)
  const root = rootCertificate(config)
  const trust = root === undefined ? '' : `--cacert ${quote(root)} `
  return [
    '  Send a first event:',
    '',
    `    curl ${trust}-X POST '${localIngestUrl(config)}/v1/ingest?endpoint=${endpoint_id}' \\`,
    `      -H ${header} \\`,
    `      -H 'Content-Type: application/x-ndjson' \\`,
    `      -d '{"event":"signup","user":{"id":"u-1"},"amount":12.5,"at":"2026-11-20T08:15:30Z"}'`,
    '',
    ...nextSteps(config, bootstrapped),
    '',
  ]
}

/** Double quotes let the shell expand what is inside. */
function keyHeader(firstKey: FirstKey | undefined): string {
  if (firstKey === undefined) return '"X-API-Key: $INLET_BOOTSTRAP_API_KEY"'
  if (firstKey.key !== undefined) return `'X-API-Key: ${firstKey.key}'`
  return `"X-API-Key: $(cat ${quote(firstKey.path)})"`
}

/** For a shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** Delivery to a bucket on S3 needs a role that only the bucket's owner can create, or a bucket that the operator named. */
function nextSteps(
  { objectStore, s3Buckets, paths }: Config,
  { endpoint_id, segment_max_age_seconds }: Bootstrapped,
): readonly string[] {
  const after = `  After about ${segment_max_age_seconds} seconds it is stored as Parquet under`
  if (objectStore === 'directory') return [`${after} ${paths.buckets}/local`]
  if (s3Buckets !== null) return [`${after} s3://${s3Buckets[0]}`]
  return [
    '  It stays on this machine until the endpoint has a destination. docs/destinations.md describes each step:',
    '',
    '    POST  /v1/destinations                  your bucket; the response has the policies for its role',
    '    POST  /v1/destinations/{id}/validate',
    `    PATCH /v1/endpoints/${endpoint_id}   {"destination_id": …}`,
  ]
}
