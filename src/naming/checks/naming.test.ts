import { describe, expect, test } from 'vitest'
import { isoTimestamp } from '#lib/clock.ts'
import { newId } from '#model/id.ts'
import type { CertificateCheck } from '#store/naming/certificate-checks.ts'
import type { NameServerAnswer } from '#store/naming/dns-checks.ts'
import type { NodeFacts } from '#store/nodes/nodes.ts'
import { nodeFacts } from '../../../test/support/node-facts.ts'
import { judgeNaming } from './naming.ts'

const now = Date.parse('2026-11-20T08:00:00.000Z')
const day = 86_400
const ago = (seconds: number) => isoTimestamp(now - seconds * 1000)
const host = 'abc.fra.inlet.test'

const aNode = (more: Partial<NodeFacts> = {}) =>
  nodeFacts({ region: 'fra', ipv6: ['2001:db8::1'], ingest_address: 'node:443', ...more })

describe('DNS records', () => {
  const node = aNode()
  const wanted = { A: ['192.0.2.1'], AAAA: ['2001:db8::1'] }
  const right: NameServerAnswer = { server: '198.51.100.1', ...wanted, error: null }
  const judge = (
    answers: readonly NameServerAnswer[],
    { name = host, age = 5, allowed = wanted, should = wanted, serving = [node] } = {},
  ) => {
    const check = { endpoint_id: newId(), name, answers, checked_at: ago(age) }
    return judgeNaming(
      serving,
      { host, dns: { expected: { wanted: should, allowed }, check }, certificateChecks: new Map(), failedOrder: null },
      now,
    )
  }

  test('that lead to the nodes are right', () => {
    expect(judge([right])).toEqual({ reasons: [], isProvisioned: true })
  })

  test.each<[string, Partial<NameServerAnswer>]>([
    [`the A record of ${host} is missing: it should be 192.0.2.1`, { A: [] }],
    [`the A record of ${host} is 192.0.2.9: it should be 192.0.2.1`, { A: ['192.0.2.9'] }],
    [`the A record of ${host} is 192.0.2.1, 192.0.2.9: it should be 192.0.2.1`, { A: ['192.0.2.1', '192.0.2.9'] }],
    [`the AAAA record of ${host} is missing: it should be 2001:db8::1`, { AAAA: [] }],
    [`name server 198.51.100.1 gave no answer about ${host}: no response`, { A: [], AAAA: [], error: 'no response' }],
  ])('%s', (reason, difference) => {
    expect(judge([{ ...right, ...difference }])).toEqual({ reasons: [reason], isProvisioned: false })
  })

  test('of which there are very many are listed in part', () => {
    const many = Array.from({ length: 4_000 }, (_, index) => `198.51.${index >> 8}.${index & 255}`)
    const [reason = ''] = judge([{ ...right, A: many }]).reasons
    expect(reason).toContain('198.51.0.19 and 3980 more: it should be 192.0.2.1')
  })

  test('that should not be there', () => {
    const ipv4Only = { ...wanted, AAAA: [] }
    expect(judge([right], { should: ipv4Only, allowed: ipv4Only }).reasons).toEqual([
      `the AAAA record of ${host} is 2001:db8::1: there should be none`,
    ])
  })

  test('that differ at one of several name servers are named with the server', () => {
    const old = { ...right, server: '198.51.100.2', A: ['192.0.2.9'] }
    expect(judge([right, old]).reasons).toEqual([
      `the A record of ${host} is 192.0.2.9 at name server 198.51.100.2: it should be 192.0.2.1`,
    ])
  })

  test('cannot lead to a node without an address that clients reach', () => {
    const none = aNode({ ipv4: [], ipv6: [] })
    const local = aNode({ ipv4: ['127.0.0.1'], ipv6: ['::1'] })
    const reasons = [
      `node ${none.id} reports no address for DNS: set INLET_NODE_ADDRESSES on it`,
      `node ${local.id} reports only loopback addresses for DNS (127.0.0.1, ::1): set INLET_NODE_ADDRESSES on it`,
    ]
    expect(judge([right], { serving: [node, none, local] })).toEqual({ reasons, isProvisioned: true })
    expect(judge([right], { serving: [none, local] })).toEqual({ reasons, isProvisioned: false })
    const listening = { ...local, ingest_address: '[::1]:443' }
    expect(judge([right], { serving: [listening] })).toEqual({ reasons: [], isProvisioned: true })
  })

  test('that an operator keeps may name nodes that are not healthy', () => {
    const both = { ...wanted, A: ['192.0.2.1', '192.0.2.2'] }
    expect(judge([{ ...right, ...both }], { allowed: both }).reasons).toEqual([])
  })

  test('were not looked up yet, not under this name, or too long ago', () => {
    const never = [`DNS of ${host} was not looked up yet`]
    const dns = { expected: { wanted, allowed: wanted }, check: undefined }
    expect(judgeNaming([node], { host, dns, certificateChecks: new Map(), failedOrder: null }, now).reasons).toEqual(never)
    expect(judge([right], { name: 'abc.fra.old.test' }).reasons).toEqual(never)
    expect(judge([right], { age: 121 }).reasons).toEqual([
      `DNS of ${host} was last looked up at ${ago(121)}: see whether control can reach the name servers`,
    ])
  })
})

describe('certificates', () => {
  const node = aNode({ ipv6: [], tls_ports: [443] })
  const right = { ...{ node_id: node.id, address: '192.0.2.1', port: 443, names: 'DNS:*.fra.inlet.test', error: null } }
  const aCheck = (more: Partial<CertificateCheck> = {}): CertificateCheck => ({
    ...right,
    ...{ not_before: ago(60 * day), not_after: ago(-30 * day), checked_at: ago(5) },
    ...more,
  })
  const judge = (
    checks: readonly CertificateCheck[],
    { name = host as string | null, serving = [node], failedOrder = null as string | null } = {},
  ) => {
    const certificateChecks = Map.groupBy(checks, ({ node_id }) => node_id)
    const { reasons, isProvisioned } = judgeNaming(serving, { host: name, dns: null, certificateChecks, failedOrder }, now)
    return { reasons: reasons.map((reason) => reason.replace(`the certificate of node ${node.id} `, '')), isProvisioned }
  }

  test('for the name that are not about to expire are right; without a base domain the name does not matter', () => {
    expect(judge([aCheck()])).toEqual({ reasons: [], isProvisioned: true })
    expect(judge([aCheck({ names: 'DNS:localhost' })], { name: null })).toEqual({ reasons: [], isProvisioned: true })
  })

  test.each<[string, Partial<CertificateCheck>]>([
    [`expired at ${ago(0)}: renew it`, { not_after: ago(0) }],
    [`is valid only from ${ago(-1)}: check the clocks`, { not_before: ago(-1) }],
    [`is for *.ber.inlet.test, localhost, not for ${host}`, { names: 'DNS:*.ber.inlet.test, DNS:localhost' }],
    [`is for no name, not for ${host}`, { names: '' }],
    ['cannot be read at 192.0.2.1 port 443: no response within 5 s', { error: 'no response within 5 s' }],
    [`was last checked at ${ago(121)}: see whether control can reach 192.0.2.1 port 443`, { checked_at: ago(121) }],
  ])('%s', (reason, difference) => {
    expect(judge([aCheck(difference)])).toEqual({ reasons: [reason], isProvisioned: false })
  })

  test('that were never seen', () => {
    expect(judge([])).toEqual({ reasons: ['is not checked yet at 192.0.2.1 port 443'], isProvisioned: false })
  })

  test('that expire soon, by their life, degrade but do not stop clients', () => {
    const soon = (life: number, left: number) => judge([aCheck({ not_before: ago(life - left), not_after: ago(-left) })])
    expect(soon(90 * day, 14 * day)).toEqual({ reasons: [`expires at ${ago(-14 * day)}: renew it`], isProvisioned: true })
    expect(soon(90 * day, 14 * day + 1).reasons).toEqual([])
    expect(soon(600, 100).reasons).toHaveLength(1)
    expect(soon(600, 101).reasons).toEqual([])
  })

  test('that could not be renewed: why is told once clients are about to notice', () => {
    const failedOrder = 'no response'
    expect(judge([aCheck()], { failedOrder }).reasons).toEqual([])
    expect(judge([aCheck({ not_after: ago(0) })], { failedOrder }).reasons).toEqual([
      `expired at ${ago(0)}: renew it`,
      'the last order of a certificate failed: no response',
    ])
  })

  test('of one of two nodes that is wrong degrades an endpoint that is provisioned', () => {
    const other = aNode({ ipv6: [], tls_ports: [443] })
    const checks = [aCheck(), aCheck({ node_id: other.id, error: 'connect ECONNREFUSED 192.0.2.1:443' })]
    const { reasons, isProvisioned } = judge(checks, { serving: [node, other] })
    expect(reasons).toEqual([expect.stringContaining(`node ${other.id} cannot be read`)])
    expect(isProvisioned).toBe(true)
  })
})
