import fc from 'fast-check'
import { expect, test } from 'vitest'
import { findAddressFault, isLoopback, isLoopbackUrl, maskAddress, Networks, shortAddress } from './ip-addresses.ts'

test.each([
  ['0.0.0.0', 'an unspecified address'],
  ['0.1.2.3', 'an unspecified address'],
  ['::', 'an unspecified address'],
  ['0:0::0', 'an unspecified address'],
  ['224.0.0.1', 'a multicast address'],
  ['239.255.255.255', 'a multicast address'],
  ['FF02::1', 'a multicast address'],
  ['255.255.255.255', 'a broadcast address'],
  ['::ffff:192.0.2.1', 'an IPv4 address in the notation of IPv6'],
  ['::FFFF:7f00:1', 'an IPv4 address in the notation of IPv6'],
])('no client can connect to %s', (address, fault) => {
  expect(findAddressFault(address)).toBe(fault)
})

test.each(['192.0.2.1', '127.0.0.1', '10.0.0.1', '223.255.255.255', '240.0.0.1', '2001:db8::1', '::1', '::2', 'fe80::1'])(
  'a client may be able to connect to %s',
  (address) => {
    expect(findAddressFault(address)).toBeUndefined()
  },
)

test('only this machine reaches loopback addresses, in whatever notation', () => {
  const hosts = ['localhost', '127.0.0.1', '127.255.0.9', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1']
  expect(hosts.filter((host) => !isLoopback(host))).toEqual([])
  expect(['', '128.0.0.1', '127.1', 'localhost.test', '::2', '::ffff:192.0.2.1'].filter(isLoopback)).toEqual([])
  expect(['http://127.0.0.1:1', 'https://[::1]:1/a', 'http://localhost'].every(isLoopbackUrl)).toBe(true)
  expect(isLoopbackUrl('https://control.test')).toBe(false)
})

test.each([
  ['192.0.2.7', '192.0.2.7', '192.0.2.0'],
  ['::ffff:192.0.2.7', '192.0.2.7', '192.0.2.0'],
  ['::FFFF:c000:0207', '192.0.2.7', '192.0.2.0'],
  ['2001:0DB8:0001:0002:0000:0000:0000:0001', '2001:db8:1:2::1', '2001:db8:1::'],
  ['2001:db8::1', '2001:db8::1', '2001:db8::'],
  ['2001:db8:0:5::1', '2001:db8:0:5::1', '2001:db8::'],
  ['2001:0:5::1', '2001:0:5::1', '2001:0:5::'],
  ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8', '1:2:3::'],
  ['0:0:3:4:5:6:7:8', '::3:4:5:6:7:8', '0:0:3::'],
  ['1::', '1::', '1::'],
  ['::1', '::1', '::'],
  ['::', '::', '::'],
  ['::192.0.2.7', '::192.0.2.7', '::'],
  ['::1:2:3:192.0.2.7', '::1:2:3:c000:207', '::'],
  ['0:0:1:2:3:4:192.0.2.7', '::1:2:3:4:c000:207', '0:0:1::'],
  ['fe80::1%eth0', 'fe80::1', 'fe80::'],
])('%s is %s, and %s without its host', (text, short, masked) => {
  expect(shortAddress(text)).toBe(short)
  expect(maskAddress(short)).toBe(masked)
})

test.each(['', 'unknown', '192.0.2', '192.0.2.7:80', '[::1]', '1.2.3.4.5', ':::', '::g'])('%j is no address', (text) => {
  expect(shortAddress(text)).toBeUndefined()
})

test('the mask keeps the first three groups of any IPv6 address, and nothing else', () => {
  const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }))
  const text = (groups: readonly number[]) => groups.map((each) => each.toString(16)).join(':')
  fc.assert(
    fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
      const short = shortAddress(text(groups)) ?? ''
      fc.pre(short.includes(':'))
      expect(shortAddress(maskAddress(short))).toBe(shortAddress(text([...groups.slice(0, 3), 0, 0, 0, 0, 0])))
    }),
    { numRuns: 2_000 },
  )
})

test('networks have addresses of both versions', () => {
  const networks = new Networks('10.0.0.0/8, 192.0.2.1,2001:db8::/32 , ::1')
  expect(['10.255.0.1', '192.0.2.1', '2001:db8:ffff::1', '::1'].filter((address) => !networks.has(address))).toEqual([])
  expect(['11.0.0.1', '192.0.2.2', '2001:db9::1', '::2', 'unknown', ''].filter((address) => networks.has(address))).toEqual([])
})
