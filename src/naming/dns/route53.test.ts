import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { Route53Double, route53Credentials } from '../../../test/support/route53-double.ts'
import { RecordsRejected } from './provider.ts'
import { Route53Provider } from './route53.ts'

const { signal } = new AbortController()
const name = 'abc.fra.inlet.test'
const set = { name, type: 'A', values: ['192.0.2.1', '192.0.2.2'], ttl: 30 } as const

describe('Route53Provider', () => {
  let double: Route53Double
  let provider: Route53Provider

  const providerOf = (more: object = {}) =>
    new Route53Provider({
      ...{ zoneId: double.zoneId, endpoint: double.url, credentials: route53Credentials, clock: systemClock, intervalMs: 1 },
      ...more,
    })

  beforeEach(async () => {
    double = await Route53Double.start('inlet.test')
    provider = providerOf()
  })
  afterEach(async () => {
    provider.close()
    await double[Symbol.asyncDispose]()
  })

  test('replaces sets of every type, again and again', async () => {
    await provider.apply([set, { ...set, type: 'AAAA', values: ['2001:db8::1'] }], signal)
    await provider.apply([{ ...set, values: ['192.0.2.3'], ttl: 60 }], signal)
    await provider.apply([{ ...set, values: ['192.0.2.3'], ttl: 60 }], signal)
    expect(double.find('A', name)).toMatchObject({ values: ['192.0.2.3'], ttl: 60 })
    expect(double.find('AAAA', name)?.values).toEqual(['2001:db8::1'])
  })

  describe('a text', () => {
    const record = (text: string) => ({ name: `_acme-challenge.${name}`, text, ttl: 5 })
    const texts = () => double.find('TXT', record('').name)?.values

    test('is added to those of others and removed from them, again and again', async () => {
      for (const text of ['a"b\\c', 'd', 'd']) await provider.setText(record(text), true, signal)
      expect(texts()).toEqual(['"a\\"b\\\\c"', '"d"'])
      for (let repeat = 0; repeat < 2; repeat++) await provider.setText(record('a"b\\c'), false, signal)
      expect(texts()).toEqual(['"d"'])
      for (let repeat = 0; repeat < 2; repeat++) await provider.setText(record('d'), false, signal)
      expect(texts()).toBeUndefined()
    })

    test('loses nothing if several change them at the same time', async () => {
      const others = [provider, providerOf(), providerOf(), providerOf()]
      const setAll = (isPublished: boolean) =>
        Promise.all(others.map((other, index) => other.setText(record(`text ${index}`), isPublished, signal)))
      await setAll(true)
      expect(texts()?.toSorted()).toEqual(others.map((_, index) => `"text ${index}"`))
      await provider.setText(record('mine'), true, signal)
      await setAll(false)
      expect(texts()).toEqual(['"mine"'])
    })

    test('says what AWS rejects', async () => {
      const wrong = { ...record('x'), name: '_acme-challenge.example.com' }
      await expect(provider.setText(wrong, true, signal)).rejects.toThrow(RecordsRejected)
    })
  })

  test('removes sets as they are, whoever changed them, and none that is not there', async () => {
    await provider.apply([set, { ...set, type: 'AAAA', values: ['2001:db8::1'] }], signal)
    await providerOf().apply([{ ...set, values: ['192.0.2.9'], ttl: 77 }], signal)
    const gone = { ...set, values: [] }
    await provider.apply([gone, { ...gone, name: `x.${name}` }], signal)
    await provider.apply([gone], signal)
    expect(double.find('A', name)).toBeUndefined()
    expect(double.find('AAAA', name)?.values).toEqual(['2001:db8::1'])
  })

  test('splits what is too large for one request', async () => {
    const values = Array.from({ length: 32 }, (_, index) => `192.0.2.${index}`)
    const sets = Array.from({ length: 100 }, (_, index) => ({ ...set, name: `${index}.fra.inlet.test`, values }))
    await provider.apply(sets, signal)
    expect(double.batches.length).toBe(7)
    expect(double.batches.flat()).toHaveLength(100)
    expect(double.find('A', '99.fra.inlet.test')?.values).toEqual(values)
  })

  test('says what AWS rejects, and changes nothing then', async () => {
    const wrong = { ...set, name: 'abc.fra.example.com' }
    const applied = provider.apply([set, wrong], signal)
    await expect(applied).rejects.toThrow(RecordsRejected)
    await expect(applied).rejects.toThrow('RRSet with DNS name abc.fra.example.com. is not permitted in zone inlet.test.')
    expect(double.find('A', name)).toBeUndefined()
  })

  test.each([
    ['the zone is missing', { zoneId: 'Z999' }, /no hosted zone Z999: check INLET_DNS_ROUTE53_ZONE_ID/],
    [
      'the credentials are wrong',
      { credentials: { accessKeyId: 'AKIA', secretAccessKey: 'x' } },
      /credentials of control are not valid/,
    ],
  ])('says what to do if %s', async (_, more, message) => {
    const applied = providerOf(more).apply([set], signal)
    await expect(applied).rejects.toThrow(message)
    await expect(applied).rejects.not.toThrow(RecordsRejected)
  })

  test.each([
    ['Throttling', 400],
    ['PriorRequestNotComplete', 400],
    ['ServiceUnavailable', 503],
  ])('fails for now on %s', async (code, status) => {
    double.fault = () => ({ status, code, message: 'Rate exceeded' })
    const applied = provider.apply([set], signal)
    await expect(applied).rejects.toThrow(`Route 53 cannot be used: ${code}`)
    await expect(applied).rejects.not.toThrow(RecordsRejected)
    double.fault = () => undefined
    await provider.apply([set], signal)
    expect(double.find('A', name)?.values).toEqual(set.values)
  })

  test('names the permissions that are missing', async () => {
    double.fault = () => ({ status: 403, code: 'AccessDenied', message: 'User is not authorized' })
    await expect(provider.apply([set], signal)).rejects.toThrow(/allow .*route53:ChangeResourceRecordSets/)
  })

  test('gives up when it is told to', async () => {
    double.fault = () => 'silence'
    await expect(provider.apply([set], AbortSignal.timeout(50))).rejects.toMatchObject({ name: 'TimeoutError' })
  })
})
