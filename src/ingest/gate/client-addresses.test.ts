import { expect, test } from 'vitest'
import { ClientAddresses, forwardedForOf } from './client-addresses.ts'

const proxies = '10.0.0.0/8, 2001:db8::/32'

test.each<[string, string | undefined, string | undefined, string | undefined]>([
  ['the other end', '192.0.2.7', undefined, '192.0.2.7'],
  ['IPv4 in the notation of IPv6', '::ffff:192.0.2.7', undefined, '192.0.2.7'],
  ['a client that is no proxy, whatever it says', '192.0.2.7', '198.51.100.1', '192.0.2.7'],
  ['the client of a proxy', '10.0.0.1', '198.51.100.1', '198.51.100.1'],
  ['the client of a proxy that the node sees as IPv6', '::ffff:10.0.0.1', '198.51.100.1', '198.51.100.1'],
  ['the client of two proxies', '10.0.0.1', '198.51.100.1, 2001:db8::5', '198.51.100.1'],
  ['the last one that is no proxy: others may be invented', '10.0.0.1', '203.0.113.9, 198.51.100.1,10.0.0.2', '198.51.100.1'],
  ['a proxy in front of a connection without headers', '10.0.0.1', undefined, '10.0.0.1'],
  ['nothing for a proxy that says nothing', '10.0.0.1', '', undefined],
  ['nothing for a proxy that says only commas', '10.0.0.1', ' ,, ', undefined],
  ['the first of nothing but proxies', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
  ['empty parts are no part', '10.0.0.1', ' , 198.51.100.1 ,,', '198.51.100.1'],
  ['IPv6', '10.0.0.1', '2001:DB9:0:0::1', '2001:db9::1'],
  ['with a port', '10.0.0.1', '198.51.100.1:4711', '198.51.100.1'],
  ['IPv6 with a port', '10.0.0.1', '[2001:db9::1]:4711', '2001:db9::1'],
  ['IPv6 in brackets', '10.0.0.1', '[2001:db9::1]', '2001:db9::1'],
  ['nothing for a name that hides it', '10.0.0.1', '198.51.100.1, unknown', undefined],
  ['nothing for what is no address', '10.0.0.1', '_hidden:80', undefined],
  ['nothing for markup', '10.0.0.1', '<script>', undefined],
  ['nothing once the connection is closed', undefined, '198.51.100.1', undefined],
  ['nothing of more proxies than there can be', '10.0.0.1', Array(40).fill('10.0.0.2').join(), undefined],
])('%s', (_, address, forwardedFor, expected) => {
  expect(new ClientAddresses(proxies).find({ address, forwardedFor })).toBe(expected)
})

test('no proxy is trusted unless the operator names it', () => {
  expect(new ClientAddresses(null).find({ address: '10.0.0.1', forwardedFor: '198.51.100.1' })).toBe('10.0.0.1')
})

test('of a header that is too long only the end counts, which the proxies appended', () => {
  const proxies = '10.0.0.0/8'
  expect(forwardedForOf({ 'x-forwarded-for': '198.51.100.1' })).toBe('198.51.100.1')
  const sent = (header: string) => {
    const forwardedFor = forwardedForOf({ 'x-forwarded-for': header })
    expect(forwardedFor?.length).toBeLessThanOrEqual(2_051)
    return new ClientAddresses(proxies).find({ address: '10.0.0.1', forwardedFor })
  }
  expect(sent(`${'x'.repeat(3_000)}, 203.0.113.9`)).toBe('203.0.113.9')
  expect(sent(`${'1.1.1.1, '.repeat(1_000)}203.0.113.9, 10.0.0.2`)).toBe('203.0.113.9')
  expect(sent(`${'10.1.1.1, '.repeat(1_000)}10.0.0.2`)).toBeUndefined()
  expect(sent('x'.repeat(3_000))).toBeUndefined()
})
