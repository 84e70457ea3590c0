/** Explains problems with the certificates of a node, in sentences for the owner of an endpoint. */
import { loadTls } from '#lib/http.ts'
import { namedId } from '#lib/named-id.ts'
import type { CertificateCheck } from '#store/naming/certificate-checks.ts'
import type { NodeFacts } from '#store/nodes/nodes.ts'
import { checkStaleSeconds, expiryNoticePart, expiryNoticeSecondsMax } from './limits.ts'
import { listSome } from './list-some.ts'
import { tlsAddressesOf } from './tls-addresses.ts'

export type CertificateReasons = {
  readonly reasons: readonly string[]
  /** Whether clients can connect at one of the addresses at least. True for a node without TLS. */
  readonly isUsable: boolean
}

/** `host` is the name that clients use; null if they connect to an address. */
export function judgeCertificates(
  node: NodeFacts,
  checks: readonly CertificateCheck[],
  host: string | null,
  nowMs: number,
): CertificateReasons {
  const addresses = tlsAddressesOf(node)
  const faults = addresses.map(({ address, port }) => {
    const check = checks.find((each) => each.address === address && each.port === port)
    return check === undefined ? `is not checked yet at ${address} port ${port}` : findFault(check, host, nowMs)
  })
  const notices = checks.flatMap((check) => (findFault(check, host, nowMs) === undefined ? (findNotice(check, nowMs) ?? []) : []))
  const sentences = [...faults.filter((fault) => fault !== undefined), ...notices]
  return {
    reasons: [...new Set(sentences)].map((sentence) => `the certificate of node ${namedId(node.id, node.name)} ${sentence}`),
    isUsable: addresses.length === 0 || faults.includes(undefined),
  }
}

/** Returns why clients cannot use the certificate. */
function findFault(check: CertificateCheck, host: string | null, nowMs: number): string | undefined {
  const { address, port, error, names, not_before, not_after, checked_at } = check
  if (nowMs - Date.parse(checked_at) > checkStaleSeconds * 1000)
    return `was last checked at ${checked_at}: see whether control can reach ${address} port ${port}`
  if (error !== null || not_before === null || not_after === null)
    return `cannot be read at ${address} port ${port}: ${error ?? 'no certificate was sent'}`
  if (nowMs >= Date.parse(not_after)) return `expired at ${not_after}: renew it`
  if (nowMs < Date.parse(not_before)) return `is valid only from ${not_before}: check the clocks`
  if (host !== null && !isFor(host, names)) return `is for ${listNames(names)}, not for ${host}`
  return undefined
}

/** Says that the certificate expires soon. One that is renewed in time never gets so old. */
function findNotice({ not_before, not_after }: CertificateCheck, nowMs: number): string | undefined {
  if (not_before === null || not_after === null) return undefined
  const [fromMs, toMs] = [Date.parse(not_before), Date.parse(not_after)]
  const noticeMs = Math.min((toMs - fromMs) * expiryNoticePart, expiryNoticeSecondsMax * 1000)
  return toMs - nowMs <= noticeMs ? `expires at ${not_after}: renew it` : undefined
}

function isFor(host: string, names: string): boolean {
  const certificate = { subject: {}, subjectaltname: names } as unknown as Parameters<Tls['checkServerIdentity']>[1]
  return loadTls().checkServerIdentity(host, certificate) === undefined
}

type Tls = ReturnType<typeof loadTls>

/** From `DNS:a.example.com, IP Address:127.0.0.1`. */
function listNames(names: string): string {
  return names === '' ? 'no name' : listSome(names.replaceAll(/(DNS|IP Address):/g, '').split(', '))
}
