/** Explains problems with the records of an endpoint, in sentences for its owner. */
import type { DnsCheck, NameServerAnswer } from '#store/naming/dns-checks.ts'
import type { NodeFacts } from '#store/nodes/nodes.ts'
import { type Addresses, canonicalIpv6 } from '../dns/wanted.ts'
import { checkStaleSeconds } from './limits.ts'
import { listSome } from './list-some.ts'

export type ExpectedRecords = {
  /** Every name server should have all of these. */
  readonly wanted: Addresses
  /** And nothing but these. */
  readonly allowed: Addresses
}

/** Returns the addresses of these nodes, whether or not they are healthy. */
export function allAddressesOf(nodes: readonly NodeFacts[]): Addresses {
  return { A: nodes.flatMap(({ ipv4 }) => ipv4), AAAA: nodes.flatMap(({ ipv6 }) => ipv6.map(canonicalIpv6)) }
}

/** Returns one sentence for each record set that differs, and for each name server that gave no answer. */
export function listDnsReasons(
  host: string,
  expected: ExpectedRecords,
  check: DnsCheck | undefined,
  nowMs: number,
): readonly string[] {
  // After a change of the base domain the check is that of another name.
  if (check === undefined || check.name !== host) return [`DNS of ${host} was not looked up yet`]
  if (nowMs - Date.parse(check.checked_at) > checkStaleSeconds * 1000)
    return [`DNS of ${host} was last looked up at ${check.checked_at}: see whether control can reach the name servers`]
  const { answers } = check
  return answers.flatMap((answer) => {
    const at = answers.length > 1 ? ` at name server ${answer.server}` : ''
    return listDifferences(host, at, expected, answer)
  })
}

function listDifferences(host: string, at: string, { wanted, allowed }: ExpectedRecords, answer: NameServerAnswer): string[] {
  if (answer.error !== null) return [`name server ${answer.server} gave no answer about ${host}: ${answer.error}`]
  return (['A', 'AAAA'] as const).flatMap((type) => {
    const [found, should] = [answer[type], wanted[type]]
    if (isSubset(should, found) && isSubset(found, allowed[type])) return []
    const state = found.length === 0 ? 'missing' : listSome(found)
    const remedy = should.length === 0 ? 'there should be none' : `it should be ${should.join(', ')}`
    return [`the ${type} record of ${host} is ${state}${at}: ${remedy}`]
  })
}

function isSubset(some: readonly string[], all: readonly string[]): boolean {
  return some.every((each) => all.includes(each))
}
