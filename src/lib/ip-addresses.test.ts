import { expect, test } from 'vitest'
import { findAddressFault, isLoopback, isLoopbackUrl } from './ip-addresses.ts'

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
