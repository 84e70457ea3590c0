/** The settings of the programs of the cluster. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { type GatewayDescription, gatewayEnvironment } from '../support/object-gateway.ts'
import { baseDomain, type NodeName, ports, regionOf } from './layout.ts'
import type { Host } from './network/host.ts'
import { clockEnvironment } from './programs/host-clock.ts'
import type { Environment } from './programs/program.ts'

/** What all programs of one installation agree on. */
export type Installation = {
  readonly directory: string
  readonly gateway: GatewayDescription
  readonly databaseUrl: string
  readonly balancer: Host
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
  const { gateway, databaseUrl, balancer, apiKey, operatorToken, joinSecret, secretKey } = installation
  return {
    ...common(installation, host),
    ...gatewayEnvironment(gateway),
    INLET_CONTROL_LISTEN: `${host.address}:${ports.management}`,
    INLET_NODE_API_LISTEN: `${host.address}:${ports.nodeApi}`,
    INLET_BASE_URL: `http://${balancer.address}:${ports.management}`,
    INLET_BASE_DOMAIN: baseDomain,
    INLET_DATABASE_URL: databaseUrl,
    INLET_BOOTSTRAP_API_KEY: apiKey,
    INLET_OPERATOR_TOKEN: operatorToken,
    INLET_NODE_TOKEN: joinSecret,
    INLET_SECRET_KEY: secretKey,
    INLET_TRUST_PROXY: balancer.address,
    INLET_API_REQUESTS_PER_MINUTE: '100000',
    INLET_ADDRESS_REQUESTS_PER_MINUTE: '100000',
    INLET_EXCHANGE_REQUESTS_PER_MINUTE: '100000',
  }
}

export function nodeEnvironment(installation: Installation, host: Host): Environment {
  const { gateway, balancer, joinSecret } = installation
  return {
    ...common(installation, host),
    ...gatewayEnvironment(gateway),
    INLET_REGION: regionOf(host.name as NodeName),
    INLET_CONTROL_URL: `http://${balancer.address}:${ports.nodeApi}`,
    INLET_NODE_TOKEN: joinSecret,
    INLET_NODE_ADDRESSES: host.addresses.join(','),
    INLET_INGEST_LISTEN: `${host.address}:${ports.ingest}`,
    INLET_MQTT_LISTEN: `${host.address}:${ports.mqtt}`,
    INLET_DISK_RESERVE_BYTES: '0B',
  }
}

function common({ directory }: Installation, { name }: Host): Environment {
  return {
    PATH: process.env['PATH'] ?? '',
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? join(import.meta.dirname, '../../node_modules/.cache/node-compile'),
    ...clockEnvironment(directory, name),
    INLET_DATA_DIR: join(directory, name),
    INLET_LOG_FORMAT: 'json',
    // The network of the cluster is encrypted by other means: it has none.
    INLET_ALLOW_PLAINTEXT: 'true',
  }
}
