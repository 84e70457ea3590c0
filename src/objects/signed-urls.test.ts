import { describe, expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { SignedUrls } from './signed-urls.ts'

let now = Date.parse('2026-11-20T08:00:00.000Z')
const urls = new SignedUrls({ baseUrl: 'http://inlet.test/base', secret: 'secret', clock: { ...systemClock, now: () => now } })
const name = { bucket: 'lake', key: "a b/ü?#%2F../ä'&=/x.ndjson.gz" }
const pathOf = (url: string) => url.slice('http://inlet.test/base'.length)

describe('a signed URL', () => {
  test('is valid for its object until it expires', () => {
    const path = pathOf(urls.sign(name, 3600))
    expect(urls.verify(path)).toEqual(name)
    now += 3_599_000
    expect(urls.verify(path)).toEqual(name)
    now += 1_000
    expect(urls.verify(path)).toBe('expired')
  })

  test('is valid for nothing else', () => {
    const path = pathOf(urls.sign(name, 3600))
    const [, expires = ''] = /expires=(\d+)/.exec(path) ?? []
    for (const other of [
      path.replace('/lake/', '/other/'),
      path.replace('x.ndjson', 'y.ndjson'),
      path.replace(expires, String(Number(expires) + 1)),
      path.replace(/signature=../, 'signature=00'),
      path.replace(/signature=.*/, 'signature='),
      path.replace(/&signature=.*/, ''),
      path.slice(0, -2),
      path.split('?')[0] ?? '',
      '/objects',
      '/objects/lake',
      '/other/lake/x?expires=1&signature=00',
      path.replace('%3F', '%3'),
    ]) {
      expect(urls.verify(other), other).toBe('invalid')
    }
    const foreign = new SignedUrls({ baseUrl: '', secret: 'another', clock: systemClock })
    expect(foreign.verify(path)).toBe('invalid')
  })
})
