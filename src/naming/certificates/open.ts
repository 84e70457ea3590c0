/** Opens the certificates of control's listeners, and the issuer for those of nodes, as the configuration says. */
import { isIP } from 'node:net'
import { Certificate, readNamed } from '#lib/certificate.ts'
import type { Clock } from '#lib/clock.ts'
import { systemFiles, writeDurably } from '#lib/files.ts'
import { isLoopback } from '#lib/ip-addresses.ts'
import type { Keyring } from '#lib/keyring.ts'
import type { ListenAddress } from '#lib/option-types.ts'
import type { ServedCertificate } from '#lib/served-certificate.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import type { ApplyChange } from '#store/cluster/changes.ts'
import type { EpochFeed } from '#store/cluster/epoch-feed.ts'
import type { Leadership } from '#store/cluster/leadership.ts'
import type { Store } from '#store/store.ts'
import type { DnsProvider } from '../dns/provider.ts'
import { type Issuer, wildcardOf } from './issuer.ts'
import { OwnCertificate } from './own-certificate.ts'
import { createRenewals } from './renewals.ts'

/** The part of the configuration that says where certificates come from. */
export type CertificateConfig = {
  readonly certificates: 'acme' | 'development' | 'control' | null
  readonly baseUrl: string
  readonly baseDomain: string | null
  readonly acmeDirectory: string
  readonly acmeEmail: string | null
  readonly acmeCaFile: string | null
  readonly controlCertificateFile: string | null
  readonly controlKeyFile: string | null
  readonly nodeApiListen: ListenAddress
  readonly nodeApiCertificateFile: string | null
  readonly nodeApiKeyFile: string | null
  /** Where the root of the development CA is written for clients. */
  readonly paths: { readonly developmentCa: string }
}

export type CertificateContext = {
  /** Source of the certificate of each listener of control. */
  readonly sources: Readonly<Record<'control' | 'nodeApi', 'files' | 'issued' | null>>
  readonly store: Store
  readonly keyring: Keyring
  /** Publishes challenges. Undefined: Inlet publishes nothing. */
  readonly dns: DnsProvider | undefined
  readonly leadership: Leadership
  readonly feed: EpochFeed
  readonly applyChange: ApplyChange
  readonly clock: Clock
  readonly logger: Logger
}

export type Certificates = {
  /** Undefined: no TLS. */
  readonly control: ServedCertificate | undefined
  readonly nodeApi: ServedCertificate | undefined
  /** The name of the certificate for a region; undefined if control issues none. */
  readonly certificateName: ((region: string) => string) | undefined
  /** Must start before the feed. */
  readonly services: readonly Service[]
  /** Undefined if control issues none. */
  readonly renewals: Service | undefined
}

/** Throws UserError. */
export async function openCertificates(config: CertificateConfig, context: CertificateContext): Promise<Certificates> {
  const { sources, clock, logger } = context
  const { baseDomain } = config
  const host = new URL(config.baseUrl).hostname.replace(/^\[|\]$/g, '')
  const isOwnIssued = sources.control === 'issued' || sources.nodeApi === 'issued'
  if (isOwnIssued && config.certificates === 'acme' && isIP(host) !== 0)
    throw new UserError(`INLET_BASE_URL: an ACME server issues no certificate for the address ${host}; use a name`)
  const issuer = await openIssuer(config, context, host)
  const own = isOwnIssued ? new OwnCertificate({ ...context, host }) : undefined
  const openFiles = (setting: string, certificateFile: string | null, keyFile: string | null) =>
    Certificate.open({ setting, certificateFile, keyFile, clock, logger })
  const ofControl = await openFiles('INLET_CONTROL', config.controlCertificateFile, config.controlKeyFile)
  const ofNodeApi = await openFiles('INLET_NODE_API', config.nodeApiCertificateFile, config.nodeApiKeyFile)
  const isIssuing = issuer !== undefined && baseDomain !== null
  return {
    control: sources.control === 'issued' ? own : ofControl,
    nodeApi: sources.nodeApi === 'issued' ? own : ofNodeApi,
    certificateName: isIssuing ? (region) => wildcardOf(region, baseDomain) : undefined,
    services: [own, ofControl, ofNodeApi].filter((service) => service !== undefined),
    renewals: isIssuing
      ? createRenewals({ ...context, issuer, baseDomain, ownName: own === undefined ? null : host })
      : undefined,
  }
}

/** Libraries are loaded on demand: most installations need none. */
async function openIssuer(config: CertificateConfig, context: CertificateContext, host: string): Promise<Issuer | undefined> {
  if (config.certificates === 'control')
    throw new UserError('INLET_CERTIFICATES: control is for nodes; control itself needs acme or development, or files')
  if (config.certificates === null) return undefined
  if (config.baseDomain === null)
    throw new UserError('INLET_CERTIFICATES: needs INLET_BASE_DOMAIN, the domain of the names in certificates')
  return config.certificates === 'acme' ? openAcme(config, context) : openDevelopmentCa(config, context, host)
}

async function openAcme(config: CertificateConfig, { store, keyring, dns, clock }: CertificateContext): Promise<Issuer> {
  if (dns === undefined)
    throw new UserError('INLET_CERTIFICATES: acme needs INLET_DNS_PROVIDER=rfc2136 or route53, to publish the challenges')
  const { acmeDirectory: directoryUrl, acmeEmail: email, acmeCaFile } = config
  const ca = acmeCaFile === null ? undefined : await readNamed('INLET_ACME_CA_FILE', acmeCaFile)
  const { AcmeIssuer, readAccountKey } = await import('./acme.ts')
  return new AcmeIssuer({ directoryUrl, email, ca, accountKey: await readAccountKey(store.db, keyring), dns, clock })
}

async function openDevelopmentCa(config: CertificateConfig, context: CertificateContext, host: string): Promise<Issuer> {
  const { store, logger } = context
  const { DevelopmentCa } = await import('./development-ca.ts')
  const ca = await DevelopmentCa.open({ ...context, db: store.db, host, isOneMachine: isLoopback(config.nodeApiListen.host) })
  const path = config.paths.developmentCa
  await writeDurably(systemFiles, path, Buffer.from(ca.root))
  logger.notice({ root_certificate: path }, 'certificates are issued by a development CA: clients have to trust its root')
  return ca
}
