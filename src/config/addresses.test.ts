import { expect, test } from 'vitest'
import { baseUrlOf, baseUrlProblem, controlOf, localControlUrl, localIngestUrl } from './addresses.ts'
import { readConfig } from './config.ts'

const files = (setting: string) => ({ [`${setting}_CERTIFICATE_FILE`]: 'a.crt', [`${setting}_KEY_FILE`]: 'a.key' })

test('a listener is reached over TLS if it has a certificate, whichever way it got one', () => {
  const urlsOf = (settings: Record<string, string>) => {
    const config = readConfig(settings)
    return [localControlUrl(config), localIngestUrl(config)]
  }
  expect(urlsOf({})).toEqual(['http://127.0.0.1:8080', 'http://127.0.0.1:8081'])
  expect(urlsOf(files('INLET_CONTROL'))).toEqual(['https://127.0.0.1:8080', 'http://127.0.0.1:8081'])
  expect(urlsOf(files('INLET_TLS'))).toEqual(['http://127.0.0.1:8080', 'https://127.0.0.1:8081'])
  const issued = { INLET_CERTIFICATES: 'development', INLET_BASE_DOMAIN: 'localhost' }
  expect(urlsOf(issued)).toEqual(['http://127.0.0.1:8080', 'https://127.0.0.1:8081'])
  expect(urlsOf({ ...issued, INLET_BASE_URL: 'https://localhost:8080' })).toEqual([
    'https://127.0.0.1:8080',
    'https://127.0.0.1:8081',
  ])
  // A proxy has the certificate.
  expect(urlsOf({ INLET_BASE_URL: 'https://inlet.example.com' })).toEqual(['http://127.0.0.1:8080', 'http://127.0.0.1:8081'])
})

test('a base URL without TLS before a listener with a certificate is a problem', () => {
  const problemOf = (settings: Record<string, string>) => baseUrlProblem(readConfig(settings))
  expect(problemOf({ INLET_BASE_URL: 'http://127.0.0.1:8080', ...files('INLET_CONTROL') })).toMatch(/speaks TLS/)
  expect(problemOf({ INLET_BASE_URL: 'https://127.0.0.1:8080', ...files('INLET_CONTROL') })).toBeUndefined()
  expect(problemOf({ INLET_BASE_URL: 'http://127.0.0.1:8080' })).toBeUndefined()
})

test('no URL has the address that stands for all addresses', () => {
  const config = readConfig({
    INLET_CONTROL_LISTEN: '0.0.0.0:8080',
    INLET_NODE_API_LISTEN: '[::]:8082',
    INLET_INGEST_LISTEN: '[::]:8081',
    ...files('INLET_CONTROL'),
    ...files('INLET_NODE_API'),
  })
  expect(baseUrlOf(config)).toBe('https://127.0.0.1:8080')
  expect(localIngestUrl(config)).toBe('http://[::1]:8081')
  expect(controlOf(config).url).toBe('https://[::1]:8082')
})
