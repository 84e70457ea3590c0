import { expect, test } from 'vitest'
import { readConfig } from '#config.ts'
import { reportedAddresses } from './reported-addresses.ts'

function report(environment: Readonly<Record<string, string>>) {
  const warnings: unknown[] = []
  const { ipv4, ipv6 } = reportedAddresses(readConfig(environment), { warn: (...line: unknown[]) => void warnings.push(line) })
  return { addresses: [...ipv4, ...ipv6], warnings }
}

const remote = { INLET_CONTROL_URL: 'https://control.test' }
const dns = { INLET_DNS_PROVIDER: 'static', INLET_BASE_DOMAIN: 'inlet.test' }

test('all addresses are reported, by version', () => {
  const addresses = { INLET_NODE_ADDRESSES: '2001:db8::1, 192.0.2.1' }
  expect(report({ ...remote, ...addresses })).toEqual({ addresses: ['192.0.2.1', '2001:db8::1'], warnings: [] })
})

test('loopback addresses are reported only to a control of the same machine', () => {
  expect(report({})).toEqual({ addresses: ['127.0.0.1'], warnings: [] })
  expect(report({ INLET_CONTROL_URL: 'http://[::1]:8079' })).toEqual({ addresses: ['127.0.0.1'], warnings: [] })
  const warning = expect.stringContaining('set INLET_NODE_ADDRESSES')
  expect(report(remote)).toEqual({ addresses: [], warnings: [[{ loopback: ['127.0.0.1'] }, warning]] })
  expect(report({ ...remote, INLET_NODE_ADDRESSES: '::1,192.0.2.1' })).toEqual({
    addresses: ['192.0.2.1'],
    warnings: [[{ loopback: ['::1'] }, warning]],
  })
})

test('loopback addresses are reported with a warning where this machine publishes names', () => {
  const warning = expect.stringContaining('clients on other machines do not reach this node')
  expect(report(dns)).toEqual({ addresses: ['127.0.0.1'], warnings: [[{ loopback: ['127.0.0.1'] }, warning]] })
})

test('loopback addresses are not reported by a node that listens on others', () => {
  const open = { INLET_INGEST_LISTEN: '0.0.0.0:8081' }
  expect(report(open)).toEqual({ addresses: [], warnings: [] })
  const warning = expect.stringContaining('not reported to control')
  expect(report({ ...open, ...dns })).toEqual({ addresses: [], warnings: [[{ loopback: ['127.0.0.1'] }, warning]] })
})
