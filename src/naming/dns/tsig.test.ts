import { describe, expect, test } from 'vitest'
import { findSignatureProblem, signMessage, type TsigKey } from './tsig.ts'

const key: TsigKey = { name: 'Inlet.test', algorithm: 'hmac-sha256', secret: 'MDEyMzQ1Njc4OWFiY2RlZg==' }
const nowMs = 1_800_000_000_000

/** An update and its response, signed by dnspython 2 with this key at this time. */
const update =
  '123428000001000000020000076578616d706c6503636f6d000006000103616263c00c000100ff000000000000c01d000100010000001e0004c0000201'
const updateMac = 'ed85406dadd4a197a6fe6e8cfbb3519b8c35e498e1562a421352cdf514b60107'
const tsigRecord = (mac: string, error = '0000', other = '0000') => {
  const data = `0b686d61632d7368613235360000006b49d200012c${(mac.length / 2).toString(16).padStart(4, '0')}${mac}1234${error}${other}`
  return `05696e6c657404746573740000fa00ff00000000${(data.length / 2).toString(16).padStart(4, '0')}${data}`
}
const responseMac = '9f9357a37a31157c0554b19d8e7a86336a2a4f1162bc76338432ccf1c8716532'
const responseOf = (record: string, flags = 'a800') =>
  Buffer.from(`1234${flags}000100000000${record === '' ? '0000' : '0001'}076578616d706c6503636f6d0000060001${record}`, 'hex')

const problemOf = (response: Buffer, at = nowMs) => findSignatureProblem(response, Buffer.from(updateMac, 'hex'), key, at)

describe('signMessage', () => {
  test('agrees with another implementation', () => {
    const { signed, mac } = signMessage(Buffer.from(update, 'hex'), key, nowMs)
    expect(mac.toString('hex')).toBe(updateMac)
    expect(signed.toString('hex')).toBe(`${update.slice(0, 20)}0001${update.slice(24)}${tsigRecord(updateMac)}`)
  })
})

describe('findSignatureProblem', () => {
  const response = responseOf(tsigRecord(responseMac))

  test('accepts the response of another implementation', () => {
    expect(problemOf(response)).toBeUndefined()
    expect(problemOf(response, nowMs + 300_000)).toBeUndefined()
  })

  test('accepts no changed byte of the message or the signature', () => {
    const [record, time] = [response.length - tsigRecord(responseMac).length / 2, response.length - (6 + 2 + 2 + 32 + 6)]
    for (let index = 2; index < response.length; index += 1) {
      // The id is in the record too, and names, class and TTL of the record are those of the key.
      if (index >= record && index < time) continue
      const changed = Buffer.from(response)
      changed.writeUInt8(changed.readUInt8(index) ^ 1, index)
      let problem: string | undefined
      try {
        problem = problemOf(changed)
      } catch (error) {
        problem = String(error)
      }
      expect(problem, `byte ${index}`).toBeDefined()
    }
  })

  test.each<[string, Buffer, RegExp]>([
    ['no signature', responseOf(''), /is not signed/],
    ['another MAC', responseOf(tsigRecord(updateMac)), /signature of the response is wrong/],
    ['a short MAC', responseOf(tsigRecord(responseMac.slice(0, 32))), /signature of the response is wrong/],
    ['BADSIG', responseOf(tsigRecord('', '0010'), 'a809'), /check INLET_DNS_TSIG_SECRET/],
    ['BADKEY', responseOf(tsigRecord('', '0011'), 'a809'), /no TSIG key Inlet.test with hmac-sha256: check INLET_DNS_TSIG_NAME/],
    ['BADTIME', responseOf(tsigRecord(responseMac, '0012', '000600006b49d23c'), 'a809'), /differs from the one here by 60 s/],
    ['an unknown error', responseOf(tsigRecord('', '0016'), 'a809'), /TSIG error 22/],
  ])('says what is wrong with %s', (_, wrong, message) => {
    expect(problemOf(wrong)).toMatch(message)
  })

  test('accepts a response only at its time, and a refusal also without a signature', () => {
    expect(problemOf(response, nowMs + 301_000)).toMatch(/at another time/)
    expect(problemOf(responseOf('', 'a805'))).toBeUndefined()
  })

  test('throws for a message that is cut off', () => {
    for (let length = 12; length < response.length; length += 1)
      expect(() => problemOf(response.subarray(0, length)), `${length} bytes`).toThrow(RangeError)
  })
})
