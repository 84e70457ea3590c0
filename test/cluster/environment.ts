/** The settings of the programs of the cluster. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { BindDescription } from '../../tools/services/bind.ts'
import type { PebbleDescription } from '../../tools/services/pebble.ts'
import { type GatewayDescription, gatewayEnvironment } from '../support/object-gateway.ts'
import { baseDomain, copyBucket, type NodeName, ports, regionOf } from './layout.ts'
import type { Host } from './network/host.ts'
import { clockEnvironment } from './programs/host-clock.ts'
import type { Environment } from './programs/program.ts'

/** The root of the ACME server, which is not public. */
export const rootFile = 'root.pem'

/** Settings that all programs of one installation share. */
export type Installation = {
  readonly directory: string
  readonly gateway: GatewayDescription
  readonly databaseUrl: string
  readonly bind: BindDescription
  readonly pebble: PebbleDescription
  /** How the balancer is reached: without a port. */
  readonly controlOrigin: string
  readonly apiKey: string
  readonly operatorToken: string
  readonly joinSecret: string
  readonly secretKey: string
}

export function newSecrets() {
  const text = () => randomBytes(24).toString('hex')
  const secretKey = randomBytes(32).toString('base64')
  return { apiKey: `ing_live_${randomBytes(16).toString('hex')}`, operatorToken: text(), joinSecret: text(), secretKey }
}

export function controlEnvironment(installation: Installation, host: Host): Environment {
  const { gateway, databaseUrl, controlOrigin, bind, pebble, apiKey, operatorToken, joinSecret, secretKey } = installation
  return {
    ...common(installation, host),
    ...gatewayEnvironment(gateway),
    INLET_CONTROL_LISTEN: `${host.address}:${ports.management}`,
    INLET_NODE_API_LISTEN: `${host.address}:${ports.nodeApi}`,
    INLET_BASE_URL: `${controlOrigin}:${ports.management}`,
    INLET_BASE_DOMAIN: baseDomain,
    INLET_DNS_PROVIDER: 'rfc2136',
    INLET_DNS_SERVER: bind.server,
    INLET_DNS_TSIG_NAME: bind.tsig.name,
    INLET_DNS_TSIG_ALGORITHM: bind.tsig.algorithm,
    INLET_DNS_TSIG_SECRET: bind.tsig.secret,
    INLET_DNS_TTL_SECONDS: '3',
    INLET_CERTIFICATES: 'acme',
    INLET_ACME_DIRECTORY: pebble.directoryUrl,
    INLET_ACME_CA_FILE: pebble.caFile,
    INLET_DATABASE_URL: databaseUrl,
    INLET_BOOTSTRAP_API_KEY: apiKey,
    INLET_OPERATOR_TOKEN: operatorToken,
    INLET_NODE_TOKEN: joinSecret,
    INLET_SECRET_KEY: secretKey,
    INLET_API_REQUESTS_PER_MINUTE: '100000',
    INLET_ADDRESS_REQUESTS_PER_MINUTE: '100000',
    INLET_EXCHANGE_REQUESTS_PER_MINUTE: '100000',
  }
}

export function nodeEnvironment(installation: Installation, host: Host): Environment {
  const { gateway, controlOrigin, directory } = installation
  // Loopback addresses are shared with other hosts.
  const listen = host.ipv6 === undefined ? host.address : '[::]'
  return {
    ...common(installation, host),
    ...gatewayEnvironment(gateway),
    INLET_REGION: regionOf(host.name as NodeName),
    INLET_CONTROL_URL: `${controlOrigin}:${ports.nodeApi}`,
    INLET_CONTROL_CA_FILE: join(directory, rootFile),
    INLET_CERTIFICATES: 'control',
    INLET_NODE_ADDRESSES: host.addresses.join(','),
    INLET_INGEST_LISTEN: `${listen}:${ports.ingest}`,
    INLET_MQTT_LISTEN: `${listen}:${ports.mqtt}`,
    INLET_DISK_RESERVE_BYTES: '0B',
    INLET_COPY_URL: `s3://${copyBucket}/nodes`,
    INLET_COPY_S3_ENDPOINT: gateway.url,
    INLET_COPY_ACCESS_KEY_ID: gateway.customer.accessKeyId,
    INLET_COPY_SECRET_ACCESS_KEY: gateway.customer.secretAccessKey,
  }
}

function common({ directory }: Installation, { name }: Host): Environment {
  return {
    PATH: process.env['PATH'] ?? '',
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? join(import.meta.dirname, '../../node_modules/.cache/node-compile'),
    ...clockEnvironment(directory, name),
    INLET_DATA_DIR: join(directory, name),
    INLET_LOG_FORMAT: 'json',
  }
}
