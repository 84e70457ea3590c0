import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { reachableAt } from '#lib/option-types.ts'
import { baseUrlOf, certificateSourcesOf, controlOf, httpUrl } from './addresses.ts'
import { ConfigurationError, options, readConfig } from './config.ts'

describe('readConfig', () => {
  test('works without any option', () => {
    const config = readConfig({})
    expect(config).toMatchObject({
      controlListen: { host: '127.0.0.1', port: 8080 },
      maxRequestBytes: 10 * 1024 * 1024,
      bootstrapApiKey: null,
      region: 'loc',
    })
    expect(config.paths.wal).toBe(resolve('data/node/wal'))
    expect(Object.isFrozen(config)).toBe(true)
  })

  test('reads sizes, addresses and lists', () => {
    const config = readConfig({
      INLET_MAX_REQUEST_BYTES: '1.5 MiB',
      INLET_INGEST_LISTEN: '[::1]:9000',
      INLET_NODE_ADDRESSES: '10.0.0.1, 2001:db8::1',
      INLET_DISK_BUDGET_BYTES: '1GB',
    })
    expect(config).toMatchObject({
      maxRequestBytes: 1_572_864,
      ingestListen: { host: '::1', port: 9000 },
      advertiseAddresses: ['10.0.0.1', '2001:db8::1'],
      diskBudgetBytes: 1_000_000_000,
    })
  })

  test('lists all problems at once, unknown options included', () => {
    const read = () =>
      readConfig({
        INLET_INGEST_LISTEN: 'nowhere',
        INLET_MAX_REQUEST_BYTES: '1',
        INLET_INGSET_LISTEN: 'x',
        INLET_REGION: 'Europe',
      })
    expect(read).toThrow(ConfigurationError)
    expect(read).toThrow(
      /INLET_INGEST_LISTEN: must be host:port[\s\S]*INLET_MAX_REQUEST_BYTES: must be a size from 64KiB to 256MiB[\s\S]*INLET_INGSET_LISTEN: unknown option; did you mean INLET_INGEST_LISTEN\?/,
    )
    expect(read).toThrow(/INLET_REGION: must be a region code/)
  })

  test.each([
    ['INLET_SHUTDOWN_SECONDS', 'soon', 'must be a whole number from 1 to 600'],
    ['INLET_LOG_LEVEL', 'verbose', 'must be one of debug, info, notice, warn, error, silent'],
    ['INLET_METRICS_TOKEN', 'short', 'must have at least 16 characters'],
    ['INLET_BASE_URL', 'inlet', 'must be a URL such as https://inlet.example.com'],
    ['INLET_INGEST_LISTEN', '127.0.0.1:99999', 'must be host:port with a port up to 65535'],
    [
      'INLET_CORS_ORIGINS',
      'https://app.example.com/',
      'must be * or origins as browsers send them, separated by commas, in lower case, without a path or the default port, such as https://app.example.com',
    ],
    [
      'INLET_CORS_ORIGINS',
      'app.example.com',
      'must be * or origins as browsers send them, separated by commas, in lower case, without a path or the default port, such as https://app.example.com',
    ],
    [
      'INLET_CORS_ORIGINS',
      '*, https://app.example.com',
      'must be * or origins as browsers send them, separated by commas, in lower case, without a path or the default port, such as https://app.example.com',
    ],
    ['INLET_NODE_ADDRESSES', 'x', 'must be IP addresses separated by commas'],
    ['INLET_NODE_ADDRESSES', '10.0.0.1, node.test', 'must be IP addresses separated by commas'],
    ['INLET_NODE_ADDRESSES', 'fe80::1%eth0', 'must be IP addresses separated by commas'],
    ['INLET_NODE_ADDRESSES', '10.0.0.0/8', 'must be IP addresses separated by commas'],
    ['INLET_NODE_ADDRESSES', '192.0.2.1,::', 'must be addresses that clients can connect to: :: is an unspecified address'],
    ['INLET_NODE_ADDRESSES', '224.0.0.1', 'must be addresses that clients can connect to: 224.0.0.1 is a multicast address'],
    ['INLET_NODE_ADDRESSES', Array(65).fill('192.0.2.1').join(), 'must be at most 64 IPv4 and 64 IPv6 addresses'],
    ['INLET_DATABASE_URL', 'mysql://db/inlet', 'must be postgres://user:password@host:5432/name, or the path of an SQLite file'],
    [
      'INLET_DATABASE_URL',
      'postgres://db:port/inlet',
      'must be postgres://user:password@host:5432/name, or the path of an SQLite file',
    ],
    ['inlet_data_dir', './data', 'unknown option; did you mean INLET_DATA_DIR?'],
    ['INLET_REPLICAS', '3', 'unknown option'],
  ])('says what is expected of %s instead of %s', (name, value, message) => {
    expect(() => readConfig({ [name]: value })).toThrow(new ConfigurationError(`invalid configuration:\n  ${name}: ${message}`))
  })

  test.each([
    [{ INLET_OIDC_ISSUER: 'https://id.test/realms/x' }, 'INLET_OIDC_CLIENT_ID, INLET_OIDC_CLIENT_SECRET: set all of'],
    [
      { INLET_OIDC_ISSUER: 'http://id.test', INLET_OIDC_CLIENT_ID: 'inlet', INLET_OIDC_CLIENT_SECRET: 'secret' },
      'INLET_OIDC_ISSUER: whoever is in between',
    ],
  ])('refuses a provider that is not set up, or could be impersonated: %j', (environment, problem) => {
    expect(() => readConfig(environment)).toThrow(problem)
  })

  const certificate = { INLET_NODE_API_CERTIFICATE_FILE: 'crt', INLET_NODE_API_KEY_FILE: 'key' }

  test.each([
    [
      { INLET_NODE_API_LISTEN: '0.0.0.0:8082' },
      'INLET_NODE_API_LISTEN: nodes would send their credentials to 0.0.0.0:8082 in plaintext',
    ],
    [{ INLET_NODE_API_LISTEN: '[::]:8082' }, 'INLET_NODE_API_LISTEN'],
    [{ INLET_NODE_API_LISTEN: '127.example.com:8082' }, 'INLET_NODE_API_LISTEN'],
    [
      { INLET_CONTROL_URL: 'http://10.0.0.1:8082' },
      'INLET_CONTROL_URL: the credential of this node would pass in plaintext; use https://',
    ],
    [{ INLET_CONTROL_URL: 'http://control.test:8082', ...certificate }, 'INLET_CONTROL_URL'],
    [
      { INLET_NODE_API_CERTIFICATE_FILE: 'crt' },
      'INLET_NODE_API_CERTIFICATE_FILE and INLET_NODE_API_KEY_FILE: set both or neither',
    ],
  ])('refuses plaintext between nodes and control beyond loopback: %j', (environment, problem) => {
    expect(() => readConfig(environment)).toThrow(problem)
    if (problem.includes('LISTEN') || problem.includes('URL')) readConfig({ ...environment, INLET_ALLOW_PLAINTEXT: 'true' })
  })

  test.each([
    { INLET_NODE_API_LISTEN: '0.0.0.0:8082', ...certificate },
    { INLET_NODE_API_LISTEN: '127.0.0.2:8082' },
    { INLET_NODE_API_LISTEN: '[::1]:8082', INLET_CONTROL_URL: 'http://[::1]:8082' },
    { INLET_CONTROL_URL: 'http://localhost:8082/' },
    { INLET_CONTROL_URL: 'https://control.test' },
  ])('allows %j', (environment) => {
    expect(() => readConfig(environment)).not.toThrow()
  })

  describe('the certificate of each listener', () => {
    const sources = (environment: Record<string, string>) => certificateSourcesOf(readConfig(environment))
    const issued = { INLET_CERTIFICATES: 'development', INLET_BASE_URL: 'https://inlet.test' }
    const beyondLoopback = { INLET_NODE_API_LISTEN: '0.0.0.0:8082' }

    test('there is none unless it is configured', () => {
      expect(sources({})).toEqual({ control: null, nodeApi: null, ingest: null })
    })

    test('is issued for control if clients call it by HTTPS, and for nodes that call it from elsewhere', () => {
      expect(sources(issued)).toEqual({ control: 'issued', nodeApi: null, ingest: 'issued' })
      expect(sources({ ...issued, ...beyondLoopback })).toMatchObject({ nodeApi: 'issued' })
      expect(sources({ ...issued, INLET_BASE_URL: 'http://inlet.test' })).toMatchObject({ control: null, ingest: 'issued' })
      expect(() => readConfig({ ...issued, ...beyondLoopback, INLET_BASE_URL: '' })).toThrow('in plaintext')
    })

    test('comes from files where they are set', () => {
      const files = { INLET_CONTROL_CERTIFICATE_FILE: 'crt', INLET_CONTROL_KEY_FILE: 'key', ...certificate }
      const tls = { INLET_TLS_CERTIFICATE_FILE: 'crt', INLET_TLS_KEY_FILE: 'key' }
      expect(sources({ ...issued, ...files, ...tls })).toEqual({ control: 'files', nodeApi: 'files', ingest: 'files' })
      expect(baseUrlOf(readConfig(files))).toBe('https://127.0.0.1:8080')
    })

    test('comes from control on a node elsewhere', () => {
      expect(sources({ INLET_CERTIFICATES: 'control' })).toEqual({ control: null, nodeApi: null, ingest: 'issued' })
    })
  })

  test.each([
    [{}, '127.0.0.1:8081'],
    [{ INLET_INGEST_LISTEN: '192.0.2.7:443', INLET_NODE_ADDRESSES: '203.0.113.7' }, '192.0.2.7:443'],
    [{ INLET_INGEST_LISTEN: '0.0.0.0:443', INLET_NODE_ADDRESSES: '203.0.113.7,2001:db8::7' }, '203.0.113.7:443'],
    [{ INLET_INGEST_LISTEN: '[::]:443', INLET_NODE_ADDRESSES: '2001:db8::7' }, '[2001:db8::7]:443'],
  ])('with %j clients reach ingest at %s', (environment, expected) => {
    const { ingestListen, advertiseAddresses } = readConfig(environment)
    expect(httpUrl(reachableAt(ingestListen, advertiseAddresses))).toBe(`http://${expected}`)
  })

  test('a node on the same machine calls control as it listens', () => {
    const rootFile = resolve('data/node/control-ca.pem')
    expect(controlOf(readConfig({}))).toEqual({ url: 'http://127.0.0.1:8082', caFile: null, rootFile })
    expect(controlOf(readConfig({ ...certificate, INLET_CONTROL_CA_FILE: '/ca' }))).toEqual({
      url: 'https://127.0.0.1:8082',
      caFile: '/ca',
      rootFile,
    })
  })

  test.each(['10.0.0.1', '10.0.0.0/8, ::1', '2001:db8::/32'])('trusts the proxies %s', (list) => {
    expect(readConfig({ INLET_TRUST_PROXY: list }).trustProxy).toBe(list)
  })

  test.each(['true', '1', '10.0.0.0/33', '10.0.0.0/', '2001:db8::/129', '10.0.0.1,', 'proxy.test'])(
    'rejects the proxies %s',
    (list) => {
      expect(() => readConfig({ INLET_TRUST_PROXY: list })).toThrow(/INLET_TRUST_PROXY: must be IP addresses/)
    },
  )

  test.each(['http://127.0.0.1:8000', 'https://s3.example.com/base', 'http://[::1]:9000'])('accepts a gateway at %s', (url) => {
    expect(readConfig({ INLET_OBJECT_STORE: 's3', INLET_S3_ENDPOINT: url })).toMatchObject({ objectStore: 's3', s3Endpoint: url })
  })

  test.each([
    's3.example.com',
    'ftp://s3.example.com',
    'https://key:secret@s3.example.com',
    'https://s3.example.com/?x',
    'https://',
  ])('rejects a gateway at %s', (url) => {
    const read = () => readConfig({ INLET_OBJECT_STORE: 's3', INLET_STS_ENDPOINT: url })
    expect(read).toThrow(/INLET_STS_ENDPOINT: must be a URL such as https/)
    expect(read).not.toThrow(/secret/)
  })

  test('rejects an STS that would not be used', () => {
    const sts = { INLET_OBJECT_STORE: 's3', INLET_STS_ENDPOINT: 'http://127.0.0.1:8000' }
    expect(() => readConfig({ ...sts, INLET_S3_CREDENTIALS: 'own' })).toThrow(/INLET_STS_ENDPOINT: .*INLET_S3_CREDENTIALS=own/)
    expect(readConfig({ ...sts, INLET_S3_CREDENTIALS: 'roles' })).toMatchObject({ s3Credentials: 'roles' })
  })

  test('rejects the URLs of a gateway if the object store is not S3', () => {
    const read = () => readConfig({ INLET_S3_ENDPOINT: 'http://127.0.0.1:8000', INLET_STS_ENDPOINT: 'http://127.0.0.1:8000' })
    expect(read).toThrow(/INLET_S3_ENDPOINT: needs INLET_OBJECT_STORE=s3[\s\S]*INLET_STS_ENDPOINT: needs/)
    expect(() => readConfig({ INLET_S3_CREDENTIALS: 'own' })).toThrow(/INLET_S3_CREDENTIALS: needs INLET_OBJECT_STORE=s3/)
  })

  test('takes buckets only where the operator allows them', () => {
    const s3 = { INLET_OBJECT_STORE: 's3', INLET_S3_BUCKETS: 'lake, archive/raw' }
    expect(readConfig({ ...s3, INLET_S3_CREDENTIALS: 'own' }).s3Buckets).toEqual(['lake', 'archive/raw'])
    expect(() => readConfig(s3)).toThrow(/INLET_S3_BUCKETS: needs INLET_S3_CREDENTIALS=own/)
    const wrong = { ...s3, INLET_S3_CREDENTIALS: 'own', INLET_S3_BUCKETS: 's3://lake' }
    expect(() => readConfig(wrong)).toThrow(/INLET_S3_BUCKETS: must be buckets separated by commas/)
  })

  const dns = { INLET_BASE_DOMAIN: 'ingest.example.com', INLET_DNS_TSIG_SECRET: 'c2VjcmV0LXNlY3JldC1zZWNyZXQ=' }

  test('accepts a DNS provider with what it needs', () => {
    const config = readConfig({ ...dns, INLET_DNS_PROVIDER: 'rfc2136', INLET_DNS_SERVER: '192.0.2.53:53' })
    expect(config).toMatchObject({ dnsServer: { host: '192.0.2.53', port: 53 }, dnsTsigName: 'inlet', dnsTtlSeconds: 30 })
    expect(readConfig({ INLET_BASE_DOMAIN: 'example.com', INLET_DNS_PROVIDER: 'static' }).dnsProvider).toBe('static')
  })

  test.each<[Record<string, string>, RegExp]>([
    [{ ...dns, INLET_DNS_PROVIDER: 'rfc2136' }, /INLET_DNS_SERVER: INLET_DNS_PROVIDER=rfc2136 needs it/],
    [{ ...dns, INLET_DNS_PROVIDER: 'route53' }, /INLET_DNS_TSIG_SECRET: needs INLET_DNS_PROVIDER=rfc2136\n.*ZONE_ID: .*needs it/],
    [{ INLET_DNS_SERVER: '192.0.2.53:53' }, /INLET_DNS_SERVER: needs INLET_DNS_PROVIDER=rfc2136 or static/],
    [{ INLET_DNS_PROVIDER: 'static' }, /INLET_BASE_DOMAIN: must be a domain such as/],
    [{ INLET_DNS_PROVIDER: 'static', INLET_BASE_DOMAIN: 'a domain' }, /INLET_BASE_DOMAIN: must be a domain such as/],
    [{ INLET_DNS_TSIG_SECRET: 'not-base64!' }, /INLET_DNS_TSIG_SECRET: must be the secret of a TSIG key in base64/],
    [{ INLET_DNS_TSIG_NAME: 'a key' }, /INLET_DNS_TSIG_NAME: must be the name of a key/],
  ])('rejects the DNS settings %j', (from, message) => {
    expect(() => readConfig(from)).toThrow(message)
    expect(() => readConfig(from)).not.toThrow(/not-base64/)
  })

  test('rejects a user of workers that could read what Inlet or readers of buckets can', () => {
    expect(() => readConfig({ INLET_WORKER_USER: '0:7' })).toThrow('INLET_WORKER_USER: must not be root')
    const read = (group: string) => () => readConfig({ INLET_WORKER_USER: '8:7', INLET_BUCKETS_GROUP: group })
    expect(read('7')).toThrow('INLET_WORKER_USER: its group is INLET_BUCKETS_GROUP')
    expect(read('8')).not.toThrow()
  })

  test.each([
    ['INLET_BOOTSTRAP_API_KEY', 'must be ing_live_'],
    ['INLET_JOIN_TOKEN', 'must be a join token'],
  ])('rejects a malformed %s without printing it', (name, message) => {
    const read = () => readConfig({ [name]: 'hunter2' })
    expect(read).toThrow(`${name}: ${message}`)
    expect(read).not.toThrow(/hunter2/)
  })
})

test('every option is used', () => {
  const source = resolve(import.meta.dirname, '..')
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  const sources = files.filter((name) => /(?<!\.test)\.ts$/.test(name) && name !== 'config/config.ts')
  const program = sources.map((name) => readFileSync(resolve(source, name), 'utf8')).join('\n')
  expect(Object.keys(options).filter((name) => !new RegExp(`\\b${name}\\b`).test(program))).toEqual([])
})

test('docs/configuration.md is up to date', () => {
  execFileSync(process.execPath, [resolve(import.meta.dirname, '../../tools/write-config-docs.ts'), '--check'])
})
