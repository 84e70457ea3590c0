import { hostname } from 'node:os'
import { expect, test } from 'vitest'
import { reachableUrl } from './reachable-url.ts'

test('a listener on every address has a host that others can use', () => {
  const host = '0.0.0.0'
  expect(reachableUrl('https://127.0.0.1:8082', { host: '127.0.0.1' }, 'https://inlet.test')).toBe('https://127.0.0.1:8082')
  expect(reachableUrl('https://127.0.0.1:8082', { host }, 'https://inlet.test:8443')).toBe('https://inlet.test:8082')
  expect(reachableUrl('http://[::1]:8082', { host: '::' }, null)).toBe(`http://${hostname().toLowerCase()}:8082`)
})
