import { expect, test } from 'vitest'
import { type AddressSettings, reportedAddresses } from './reported-addresses.ts'

const local: AddressSettings = {
  controlUrl: null,
  ingestListen: { host: '127.0.0.1', port: 8081 },
  advertiseAddresses: ['127.0.0.1'],
  dnsProvider: null,
}
const remote = { controlUrl: 'https://control.test' }
const open = { ingestListen: { host: '0.0.0.0', port: 8081 } }
const dns = { dnsProvider: 'static' }

function report(settings: Partial<AddressSettings>) {
  const warnings: unknown[] = []
  const warn = (...line: unknown[]) => void warnings.push(line)
  const { ipv4, ipv6 } = reportedAddresses({ ...local, ...settings }, { warn })
  return { addresses: [...ipv4, ...ipv6], warnings }
}

test('all addresses are reported, by version', () => {
  const addresses = { advertiseAddresses: ['2001:db8::1', '192.0.2.1'] }
  expect(report({ ...remote, ...addresses })).toEqual({ addresses: ['192.0.2.1', '2001:db8::1'], warnings: [] })
})

test('loopback addresses are reported only to a control of the same machine', () => {
  expect(report({})).toEqual({ addresses: ['127.0.0.1'], warnings: [] })
  expect(report({ controlUrl: 'http://[::1]:8079' })).toEqual({ addresses: ['127.0.0.1'], warnings: [] })
  const warning = expect.stringContaining('set INLET_NODE_ADDRESSES')
  expect(report(remote)).toEqual({ addresses: [], warnings: [[{ loopback: ['127.0.0.1'] }, warning]] })
  expect(report({ ...remote, advertiseAddresses: ['::1', '192.0.2.1'] })).toEqual({
    addresses: ['192.0.2.1'],
    warnings: [[{ loopback: ['::1'] }, warning]],
  })
})

test('loopback addresses are reported with a warning where this machine publishes names', () => {
  const warning = expect.stringContaining('clients on other machines do not reach this node')
  expect(report(dns)).toEqual({ addresses: ['127.0.0.1'], warnings: [[{ loopback: ['127.0.0.1'] }, warning]] })
})

test('loopback addresses are not reported by a node that listens on others', () => {
  expect(report(open)).toEqual({ addresses: [], warnings: [] })
  const warning = expect.stringContaining('not reported to control')
  expect(report({ ...open, ...dns })).toEqual({ addresses: [], warnings: [[{ loopback: ['127.0.0.1'] }, warning]] })
})
