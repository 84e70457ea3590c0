import { isIP } from 'node:net'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { GiB, KiB, MiB } from './lib/bytes.ts'
import { UserError } from './lib/user-error.ts'
import { apiKeyPattern } from './model/api-key.ts'
import { Region } from './model/endpoint.ts'

/**
 * Every option, once: environment variable, type, default, bound and help line. Read once, frozen, handed down by part.
 * `docs/configuration.md` is generated from this table.
 */
type Option<T> = { readonly env: string; readonly help: string; readonly type: z.ZodType<T, string>; readonly default: string }

const text = z.string().min(1)
const integer = (min: number, max: number) => z.string().transform(Number).pipe(z.int().min(min).max(max))
const bytes = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+(\.\d+)?\s*(B|KiB|MiB|GiB|TiB|KB|MB|GB|TB)?$/i, 'must be a size such as 10MiB')
    .transform(parseBytes)
    .pipe(z.int().min(min).max(max))
const address = z
  .string()
  .regex(/^(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}$/, 'must be host:port')
  .transform(parseAddress)
const endpointUrl = z
  .string()
  .refine(isEndpoint, 'must be an address such as https://s3.example.com:9000, without user, query and fragment')
const proxies = z
  .string()
  .refine((list) => list.split(',').every(isNetwork), 'must be IP addresses or networks separated by commas')
const optional = <T>(type: z.ZodType<T, string>) =>
  z.string().transform((value, context): T | null => {
    if (value === '') return null
    const parsed = type.safeParse(value)
    if (parsed.success) return parsed.data
    for (const issue of parsed.error.issues) context.addIssue({ code: 'custom', message: issue.message })
    return z.NEVER
  })

export type ListenAddress = { readonly host: string; readonly port: number }

export const options = {
  dataDirectory: option(
    'INLET_DATA_DIR',
    './data',
    text.transform((path) => resolve(path)),
    'where everything that this installation keeps on disk lies',
  ),
  logLevel: option(
    'INLET_LOG_LEVEL',
    'info',
    z.enum(['debug', 'info', 'warn', 'error', 'silent']),
    'the least severe log line that is written',
  ),
  metricsToken: option(
    'INLET_METRICS_TOKEN',
    '',
    optional(z.string().min(16)),
    'secret that `/metrics` of control and ingest ask for (`Authorization: Bearer`); with it they also tell of single endpoints and of MQTT user names; empty: no secret, and totals only',
  ),
  shutdownSeconds: option(
    'INLET_SHUTDOWN_SECONDS',
    '20',
    integer(1, 600),
    'how long a drain after SIGTERM may take; what is not delivered by then stays on disk',
  ),

  controlListen: option('INLET_CONTROL_LISTEN', '127.0.0.1:8080', address, 'host:port of the management API'),
  databaseUrl: option('INLET_DATABASE_URL', '', z.string(), '`postgres://…`, or a path for SQLite; empty is `<data>/inlet.db`'),
  baseUrl: option(
    'INLET_BASE_URL',
    '',
    optional(z.url()),
    'address that clients know the management API by; empty is `http://` and the listen address',
  ),
  baseDomain: option(
    'INLET_BASE_DOMAIN',
    '',
    optional(text),
    'ingest hosts are `<label>.<region>.<base domain>`; empty: endpoints are reached at the node’s own address',
  ),
  bootstrapApiKey: option(
    'INLET_BOOTSTRAP_API_KEY',
    '',
    optional(z.string().regex(apiKeyPattern, 'must be ing_live_ and 32 letters or digits')),
    'an API key that shall exist with all three scopes',
  ),
  apiRequestsPerMinute: option('INLET_API_REQUESTS_PER_MINUTE', '1200', integer(1, 1_000_000), 'management calls per API key'),
  exchangeRequestsPerMinute: option(
    'INLET_EXCHANGE_REQUESTS_PER_MINUTE',
    '60',
    integer(1, 1_000_000),
    'token exchanges per client address',
  ),
  addressRequestsPerMinute: option(
    'INLET_ADDRESS_REQUESTS_PER_MINUTE',
    '6000',
    integer(1, 1_000_000),
    'management calls per client address, whoever makes them',
  ),
  trustProxy: option(
    'INLET_TRUST_PROXY',
    '',
    optional(proxies),
    'load balancers whose `X-Forwarded-For` says who calls: IP addresses and networks such as `10.0.0.0/8`, separated by commas; empty: none',
  ),
  awsPrincipalArn: option(
    'INLET_AWS_PRINCIPAL_ARN',
    '',
    optional(
      z.string().regex(/^arn:[a-z-]+:(iam|sts)::\d{12}:\S+$/, 'must be the ARN of an IAM user or role, or of an account’s root'),
    ),
    'the AWS identity that control and nodes run as, shown in the `trust_policy` of destinations',
  ),

  region: option('INLET_REGION', 'loc', Region, 'region code of this node'),
  controlUrl: option(
    'INLET_CONTROL_URL',
    '',
    optional(z.url()),
    'where a node finds control; empty is the control listen address',
  ),
  nodeToken: option(
    'INLET_NODE_TOKEN',
    '',
    optional(z.string().min(32)),
    'secret that control and nodes share; empty: made at the first start and kept in `<data>/node-token`',
  ),
  advertiseAddresses: option(
    'INLET_NODE_ADDRESSES',
    '127.0.0.1',
    text.transform((list) => list.split(',').map((part) => part.trim())),
    'IP addresses of this node for DNS, separated by commas',
  ),
  ingestListen: option('INLET_INGEST_LISTEN', '127.0.0.1:8081', address, 'host:port of the ingest service'),
  maxRequestBytes: option(
    'INLET_MAX_REQUEST_BYTES',
    '10MiB',
    bytes(64 * KiB, 256 * MiB),
    'largest ingest request, as sent and decompressed',
  ),
  maxInFlightBytes: option(
    'INLET_MAX_IN_FLIGHT_BYTES',
    '128MiB',
    bytes(MiB, 16 * GiB),
    'request bytes held in memory before new requests get 503',
  ),
  maxConnections: option('INLET_MAX_CONNECTIONS', '20000', integer(1, 1_000_000), 'open ingest connections'),
  requestTimeoutSeconds: option(
    'INLET_REQUEST_TIMEOUT_SECONDS',
    '60',
    integer(1, 3600),
    'how long a client may take to send one request, to ingest or to the management API',
  ),
  mqttListen: option(
    'INLET_MQTT_LISTEN',
    '',
    optional(address),
    'host:port of MQTT without WebSocket, beside `/mqtt` of the ingest service; empty: none',
  ),
  tlsCertificateFile: option(
    'INLET_TLS_CERTIFICATE_FILE',
    '',
    optional(text.transform((path) => resolve(path))),
    'PEM file with the certificate chain of the ingest service and of MQTT; read again when it changes; empty: no TLS',
  ),
  tlsKeyFile: option(
    'INLET_TLS_KEY_FILE',
    '',
    optional(text.transform((path) => resolve(path))),
    'PEM file with the private key of the certificate',
  ),
  diskBudgetBytes: option(
    'INLET_DISK_BUDGET_BYTES',
    '20GiB',
    bytes(64 * MiB, 1024 * GiB),
    'WAL bytes on disk before new requests get 503',
  ),
  diskReserveBytes: option(
    'INLET_DISK_RESERVE_BYTES',
    '256MiB',
    bytes(0, 1024 * GiB),
    'free space of the file system below which new requests get 503',
  ),

  objectStore: option(
    'INLET_OBJECT_STORE',
    'directory',
    z.enum(['directory', 's3']),
    '`directory` keeps buckets as folders under `<data>/buckets`; `s3` writes to the buckets of destinations, with credentials from the AWS SDK’s own chain (`AWS_ACCESS_KEY_ID` and so on): docs/destinations.md',
  ),
  s3Endpoint: option(
    'INLET_S3_ENDPOINT',
    '',
    optional(endpointUrl),
    'address of an S3 gateway; empty: AWS’s own for the region of each destination. `http://` is for gateways on this machine or in a network of your own',
  ),
  stsEndpoint: option(
    'INLET_STS_ENDPOINT',
    '',
    optional(endpointUrl),
    'address of the STS that roles are assumed at, whose answers hold credentials; empty: AWS’s own for the region of each destination',
  ),
  deliveryParallel: option(
    'INLET_DELIVERY_PARALLEL',
    '2',
    integer(1, 64),
    'segments that are converted at the same time, one of them still being loaded',
  ),
  deliveryMemoryBytes: option(
    'INLET_DELIVERY_MEMORY_BYTES',
    '384MiB',
    bytes(192 * MiB, 256 * GiB),
    'memory for conversions; beyond it they wait or use scratch space on disk',
  ),
} as const

export type Config = { readonly [Name in keyof typeof options]: (typeof options)[Name] extends Option<infer T> ? T : never } & {
  readonly paths: ReturnType<typeof pathsUnder>
}

/** The environment of this process, for those it starts. */
export const environment: Readonly<Record<string, string | undefined>> = process.env

export class ConfigurationError extends UserError {
  override readonly name = 'ConfigurationError'
}

/** Reads all options. Throws one ConfigurationError that lists every problem. */
export function readConfig(from: Readonly<Record<string, string | undefined>> = environment): Config {
  const problems: string[] = []
  const values: Record<string, unknown> = {}
  for (const [name, { env, type, default: fallback }] of Object.entries(options)) {
    const parsed = (type as z.ZodType).safeParse(from[env] || fallback)
    if (parsed.success) values[name] = parsed.data
    else problems.push(`${env}: ${parsed.error.issues.map((issue) => issue.message).join('; ')}`)
  }
  const known = new Set<string>(Object.values(options).map(({ env }) => env))
  for (const name of Object.keys(from)) {
    if (name.startsWith('INLET_') && !known.has(name)) problems.push(`${name}: no such option`)
  }
  for (const name of ['INLET_S3_ENDPOINT', 'INLET_STS_ENDPOINT']) {
    if (from[name] && values['objectStore'] === 'directory') problems.push(`${name}: only with INLET_OBJECT_STORE=s3`)
  }
  if (from['INLET_CONTROL_URL'] && !from['INLET_NODE_TOKEN']) {
    problems.push('INLET_NODE_TOKEN: a node of a control elsewhere needs the secret of that control (its <data>/node-token)')
  }
  if (!from['INLET_TLS_CERTIFICATE_FILE'] !== !from['INLET_TLS_KEY_FILE']) {
    problems.push('INLET_TLS_CERTIFICATE_FILE and INLET_TLS_KEY_FILE: set both, or neither')
  }
  if (problems.length > 0) throw new ConfigurationError(`the configuration has problems:\n  ${problems.join('\n  ')}`)
  const dataDirectory = values['dataDirectory'] as string
  return Object.freeze({ ...values, paths: pathsUnder(dataDirectory) }) as Config
}

/** The layout of the data directory. */
function pathsUnder(data: string) {
  return {
    data,
    database: join(data, 'inlet.db'),
    nodeToken: join(data, 'node-token'),
    nodeId: join(data, 'node', 'id'),
    ingestSnapshot: join(data, 'node', 'ingest-snapshot.ndjson'),
    deliverySnapshot: join(data, 'node', 'delivery-snapshot.ndjson'),
    wal: join(data, 'node', 'wal'),
    outbox: join(data, 'node', 'outbox'),
    suspects: join(data, 'node', 'suspects'),
    scratch: join(data, 'node', 'scratch'),
    ingestLock: join(data, 'node', 'ingest.lock'),
    deliveryLock: join(data, 'node', 'delivery.lock'),
    buckets: join(data, 'buckets'),
  } as const
}

export function httpUrl({ host, port }: ListenAddress, scheme: 'http' | 'https' = 'http'): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

function option<T>(env: string, fallback: string, type: z.ZodType<T, string>, help: string): Option<T> {
  return { env, default: fallback, type, help }
}

function isEndpoint(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && `${url.username}${url.password}${url.search}${url.hash}` === ''
}

function isNetwork(text: string): boolean {
  const [address = '', bits] = text.trim().split('/')
  const version = isIP(address)
  if (bits === undefined) return version !== 0
  return /^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : version === 6 ? 128 : -1)
}

function parseAddress(value: string): ListenAddress {
  const at = value.lastIndexOf(':')
  return { host: value.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(value.slice(at + 1)) }
}

function parseBytes(value: string): number {
  const [, amount = '0', unit = 'B'] = /^([\d.]+)\s*([A-Za-z]*)$/.exec(value) ?? []
  const powers = ['', 'K', 'M', 'G', 'T']
  const power = powers.indexOf(unit.replace(/i?B$/i, '').toUpperCase())
  return Math.round(Number(amount) * (/iB$/i.test(unit) ? 1024 : 1000) ** Math.max(power, 0))
}
