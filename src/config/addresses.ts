/** Where the processes of an installation listen and reach each other, as the configuration has it. */

import { isLoopback } from '#lib/ip-addresses.ts'
import type { ListenAddress } from '#lib/option-types.ts'
import type { Config } from './config.ts'

/** Returns the public URL of the management API, without a slash at its end. */
export function baseUrlOf(config: Config): string {
  return (config.baseUrl ?? localControlUrl(config)).replace(/\/+$/, '')
}

/** Returns why links into the console lead nowhere; undefined if nothing is wrong. */
export function baseUrlProblem(config: Config): string | undefined {
  if (certificateSourcesOf(config).control === null || config.baseUrl?.startsWith('http:') !== true) return undefined
  return `links into the console begin with ${config.baseUrl}, but the management API speaks TLS`
}

/** Returns where this machine reaches the management API, whatever its public URL is. */
export function localControlUrl(config: Config): string {
  return localUrl(config.controlListen, certificateSourcesOf(config).control)
}

/** Returns where this machine reaches ingest, without the path. */
export function localIngestUrl(config: Config): string {
  return localUrl(config.ingestListen, certificateSourcesOf(config).ingest)
}

/** Returns where this machine reaches a listener. */
export function localUrl(address: ListenAddress, certificate: CertificateSource): string {
  return httpUrl(reachable(address), certificate === null ? 'http' : 'https')
}

/** Clients cannot connect to the address that stands for all addresses of this machine. */
function reachable({ host, port }: ListenAddress): ListenAddress {
  return { host: host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host, port }
}

/** Returns the provider with which people sign in; null for none. */
export function signInProviderOf({ oidcIssuer, oidcClientId: clientId, oidcClientSecret: clientSecret, oidcName: name }: Config) {
  if (oidcIssuer === null || clientId === null || clientSecret === null) return null
  return { issuer: oidcIssuer.replace(/\/+$/, ''), clientId, clientSecret, name }
}

/** Where the certificate of a listener comes from; null: the listener does not use TLS. */
export type CertificateSource = 'files' | 'issued' | null

/**
 * Returns the source for each listener. Control gets a certificate for the host in its base URL. On loopback the API for nodes needs none,
 * and nodes on this machine would call it by another name.
 */
export function certificateSourcesOf(
  config: CertificateSettings,
): Readonly<Record<'control' | 'nodeApi' | 'ingest', CertificateSource>> {
  const { certificates, baseUrl, nodeApiListen } = config
  const isIssued = certificates === 'acme' || certificates === 'development'
  const isControlIssued = isIssued && baseUrl?.startsWith('https:') === true
  return {
    control: config.controlCertificateFile !== null ? 'files' : isControlIssued ? 'issued' : null,
    nodeApi:
      config.nodeApiCertificateFile !== null ? 'files' : isControlIssued && !isLoopback(nodeApiListen.host) ? 'issued' : null,
    ingest: config.tlsCertificateFile !== null ? 'files' : certificates !== null ? 'issued' : null,
  }
}

type CertificateSettings = Pick<
  Config,
  'certificates' | 'baseUrl' | 'nodeApiListen' | 'controlCertificateFile' | 'nodeApiCertificateFile' | 'tlsCertificateFile'
>

/** Returns how a node reaches control, and which roots it trusts. */
export function controlOf(config: Config) {
  const { controlUrl, nodeApiListen, controlCaFile, paths } = config
  const url = controlUrl ?? localUrl(nodeApiListen, certificateSourcesOf(config).nodeApi)
  return { url: url.replace(/\/+$/, ''), caFile: controlCaFile, rootFile: paths.controlRoot }
}

/** Returns where ingest listens. */
export function ingestAddressesOf({ ingestListen, mqttListen, reusePort }: Config) {
  const shared = { reusePort: reusePort === 'true' }
  return { http: { ...ingestListen, ...shared }, mqtt: mqttListen === null ? null : { ...mqttListen, ...shared } }
}

export function httpUrl({ host, port }: ListenAddress, scheme: 'http' | 'https' = 'http'): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
}
