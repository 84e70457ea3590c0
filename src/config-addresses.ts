/** Where the processes of an installation listen and reach each other, as the configuration has it. */
import type { Config } from './config.ts'
import { isLoopback } from './lib/ip-addresses.ts'
import type { ListenAddress } from './lib/option-types.ts'

/** Returns the public URL of the management API, without a slash at its end. */
export function baseUrlOf(config: Config): string {
  const { baseUrl, controlListen, controlCertificateFile } = config
  return (baseUrl ?? httpUrl(controlListen, controlCertificateFile === null ? 'http' : 'https')).replace(/\/+$/, '')
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
  const url = controlUrl ?? httpUrl(nodeApiListen, certificateSourcesOf(config).nodeApi === null ? 'http' : 'https')
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
