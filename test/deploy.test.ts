/** The files under deploy/: what they name exists, and the program accepts their settings. */
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { readConfig } from '#config/config.ts'
import { makeCertificate } from './support/certificates.ts'

const root = resolve(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const { devDependencies } = JSON.parse(read('package.json')) as { devDependencies: { node: string } }

/** Reads settings as a start does. An example address resolves to nothing and needs not to. */
function accepts(settings: Readonly<Record<string, string>>): void {
  const own = Object.entries(settings).filter(([name]) => name.startsWith('INLET_'))
  expect(own.length).toBeGreaterThan(0)
  expect(() => readConfig(Object.fromEntries(own))).not.toThrow()
}

/** The variables that the image sets. */
function imageSettings(): Readonly<Record<string, string>> {
  const final =
    read('deploy/Dockerfile')
      .split(/^FROM /m)
      .at(-1) ?? ''
  const [, env = ''] = /^ENV ((?:.*\\\n)*.*)$/m.exec(final) ?? []
  return Object.fromEntries(env.split(/\s*\\\n\s*/).map((each) => each.split('=') as [string, string]))
}

describe('deploy/Dockerfile', () => {
  const dockerfile = read('deploy/Dockerfile')
  const final = dockerfile.split(/^FROM /m).at(-1) ?? ''

  test('has the Node of the repository', () => {
    expect(dockerfile).toContain(`ARG NODE_VERSION=${devDependencies.node}\n`)
  })

  test('runs as a user of its own, with a volume and a health check', () => {
    expect(final).toMatch(/^USER inlet$/m)
    expect(final).toMatch(/^VOLUME \/data$/m)
  })

  test.each([
    ['plain HTTP', { INLET_INGEST_LISTEN: '0.0.0.0' }],
    ['one address', { INLET_INGEST_LISTEN: '127.0.0.1' }],
    ['a certificate of its own', { INLET_INGEST_LISTEN: '0.0.0.0', INLET_TLS_CERTIFICATE_FILE: '/certificate/tls.crt' }],
    ['an issued certificate', { INLET_INGEST_LISTEN: '[::]', INLET_CERTIFICATES: 'acme' }],
  ])('the health check asks ingest with %s', async (_, settings) => {
    const [, command = ''] = /^HEALTHCHECK (?:.*\\\n)*? +CMD ((?:.*\\\n)*.*)$/m.exec(final) ?? []
    let status = 200
    const answer: RequestListener = ({ url }, response) => void response.writeHead(url === '/healthz' ? status : 404).end()
    const isSecure = Object.keys(settings).length > 1
    const server = isSecure
      ? createSecureServer(await makeCertificate({ names: ['inlet.example.com'], fromMs: 0, toMs: Date.now() }), answer)
      : createServer(answer)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const env = { PATH: process.env['PATH'], ...settings, INLET_INGEST_LISTEN: `${settings.INLET_INGEST_LISTEN}:${port}` }
    // As Docker runs it, which joins the lines.
    const check = () =>
      promisify(execFile)('sh', ['-c', command.replaceAll('\\\n', '')], { env }).then(
        () => 'healthy',
        ({ code, stderr }) => `${code} ${stderr}`,
      )
    try {
      expect(await check()).toBe('healthy')
      status = 503
      expect(await check()).toBe('1 ')
    } finally {
      await new Promise((resolve) => server.close(resolve))
    }
    expect(await check()).toBe('1 ')
  })

  test('has settings that the program accepts', () => {
    accepts(imageSettings())
  })

  test('gets every file that the package is built from', () => {
    const ignored = read('.dockerignore').split('\n')
    const kept = ignored.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
    for (const path of kept) expect(existsSync(join(root, path)), path).toBe(true)
    const imported = [
      'tools/package.ts',
      'tools/package/tsconfig.json',
      'tools/compile.ts',
      'console/vite.config.ts',
      'tsconfig.json',
    ]
    for (const path of imported)
      expect(
        kept.some((each) => path === each || path.startsWith(`${each}/`)),
        path,
      ).toBe(true)
  })
})

describe.each(['deploy/compose.yaml', 'deploy/compose-s3.yaml'])('%s', (path) => {
  type Service = { environment?: Record<string, string>; build?: { context: string; dockerfile: string }; volumes?: string[] }
  const { services, volumes } = parse(read(path)) as { services: Record<string, Service>; volumes: Record<string, null> }

  test('builds from what is there, and declares its volumes', () => {
    const { context, dockerfile } = services['inlet']?.build ?? { context: '', dockerfile: '' }
    expect(existsSync(resolve(root, 'deploy', context, dockerfile))).toBe(true)
    for (const { volumes: used = [] } of Object.values(services))
      for (const volume of used) expect(Object.keys(volumes)).toContain(volume.split(':')[0])
  })

  test('has settings that the program accepts', () => {
    const { environment } = services['inlet'] ?? {}
    if (environment === undefined) return
    accepts(
      Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, value.replaceAll(/\$\{\w+:\?\}/g, 'x')])),
    )
  })
})

describe('systemd', () => {
  test('every example of deploy/inlet.env is accepted', () => {
    const lines = read('deploy/inlet.env').matchAll(/^#?([A-Z_0-9]+)=(.*)$/gm)
    accepts({
      INLET_S3_CREDENTIALS: 'roles',
      ...Object.fromEntries([...lines].map(([, name = '', value = '']) => [name, value])),
    })
  })

  test.skipIf(spawnSync('systemd-analyze', ['--version']).error !== undefined)(
    'the unit is sandboxed, and systemd can read it',
    () => {
      const unit = join(root, 'deploy/inlet.service')
      const { stderr } = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' })
      // The program is not installed here.
      expect(stderr.split('\n').filter((line) => line.includes('inlet') && !line.includes('is not executable'))).toEqual([])
      const rating = execFileSync('systemd-analyze', ['security', '--offline=true', unit], { encoding: 'utf8' })
      expect(Number(/Overall exposure level for inlet\.service: ([\d.]+)/.exec(rating)?.[1])).toBeLessThan(3)
    },
  )

  test('a worker that the kernel ends for want of memory does not end the unit', () => {
    expect(read('deploy/inlet.service')).toMatch(/^OOMPolicy=continue$/m)
  })

  test('the settings of the unit are accepted', () => {
    const unit = read('deploy/inlet.service')
    const lines = [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, all = '']) => all.split(' '))
    accepts(Object.fromEntries(lines.map((each) => each.split('=') as [string, string])))
  })
})

describe('deploy/kubernetes', () => {
  type Container = {
    args: string[]
    env?: unknown[]
    ports: { name: string; containerPort: number }[]
    lifecycle?: { preStop: { sleep: { seconds: number } } }
    volumeMounts: { name: string; mountPath: string }[]
  } & Record<`${'startup' | 'liveness' | 'readiness'}Probe`, { httpGet: { path: string; port: string } }>
  type Pod = { terminationGracePeriodSeconds: number; securityContext: object; containers: [Container] }
  type Manifest = { kind: string; metadata: { name: string }; spec: { template: { spec: Pod }; ports: { targetPort: string }[] } }

  const folder = (name: string) => `deploy/kubernetes/${name}`
  const manifests = (path: string) => parseAllDocuments(read(path)).map((document): Manifest => document.toJS())
  const settings = (path: string) =>
    Object.fromEntries([...read(path).matchAll(/^(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]))
  const image = imageSettings()
  const secret = 'x'.repeat(32)
  const controlSecrets = {
    INLET_DATABASE_URL: 'postgres://inlet:x@db:5432/inlet',
    INLET_SECRET_KEY: Buffer.alloc(32).toString('base64'),
    INLET_OPERATOR_TOKEN: secret,
    INLET_NODE_TOKEN: secret,
    INLET_BOOTSTRAP_API_KEY: `ing_live_${secret}`,
  }

  describe.each([
    {
      file: 'one-machine/stateful-set.yaml',
      env: 'one-machine/inlet.env',
      secrets: { INLET_SECRET_KEY: controlSecrets.INLET_SECRET_KEY },
    },
    { file: 'cluster/control.yaml', env: 'cluster/control.env', secrets: controlSecrets },
    {
      file: 'cluster/node.yaml',
      env: 'cluster/node.env',
      secrets: { INLET_JOIN_TOKEN: `ing_join_${secret}`, INLET_NODE_ADDRESSES: '10.0.0.1' },
    },
  ])('$file', ({ file, env, secrets }) => {
    const all = manifests(folder(file))
    const { template } = all.find(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet')?.spec ?? expect.unreachable()
    const pod = template.spec
    const [container] = pod.containers
    const own = settings(folder(env))
    const config = readConfig({ ...image, ...own, ...secrets })

    test('the program accepts the settings', () => {
      accepts({ ...image, ...own, ...secrets })
      expect(['start', 'control', 'node']).toContain(container.args[0])
    })

    test('a stop has the time that the settings give it', () => {
      const { leaveSecondsMin, leaveSecondsMax, shutdownSeconds } = config
      const isNode = container.args[0] === 'node'
      const before = isNode ? Math.max(leaveSecondsMin, leaveSecondsMax) : (container.lifecycle?.preStop.sleep.seconds ?? 0)
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(before + shutdownSeconds + 10)
    })

    test('ports are those on which the program listens, and services lead to them', () => {
      const listening = {
        control: config.controlListen.port,
        ingest: config.ingestListen.port,
        'node-api': config.nodeApiListen.port,
      }
      for (const { name, containerPort } of container.ports) expect(containerPort).toBe(listening[name as keyof typeof listening])
      const names = container.ports.map(({ name }) => name)
      const services = all.filter(({ kind }) => kind === 'Service')
      for (const { spec } of services) for (const { targetPort } of spec.ports) expect(names).toContain(targetPort)
      const probed = ['startupProbe', 'livenessProbe', 'readinessProbe'] as const
      for (const probe of probed) expect(names).toContain(container[probe].httpGet.port)
      expect(probed.map((probe) => container[probe].httpGet.path)).toEqual(['/healthz', '/healthz', '/readyz'])
    })

    test('is confined, and writes to its volumes only', () => {
      expect(container).toMatchObject({
        securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
      })
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        runAsUser: 1500,
        seccompProfile: { type: 'RuntimeDefault' },
      })
      expect(container.volumeMounts.map(({ mountPath }) => mountPath)).toEqual(
        expect.arrayContaining([config.dataDirectory, '/tmp']),
      )
    })
  })

  test('nodes call control where it serves them', () => {
    const url = new URL(settings(folder('cluster/node.env'))['INLET_CONTROL_URL'] ?? '')
    const service = manifests(folder('cluster/control.yaml')).find(({ metadata }) => url.hostname.startsWith(`${metadata.name}.`))
    expect(service?.spec.ports[0]).toMatchObject({ port: Number(url.port), targetPort: 'node-api' })
  })

  test('components name pods, ports and volumes that there are', () => {
    type Part = {
      kind: string
      metadata: { name: string }
      spec: {
        selector: { matchLabels: Record<string, string> }
        podMetricsEndpoints: { port: string }[]
        rules: { http: { paths: { backend: { service: { name: string; port: { name: string } } } }[] } }[]
        secretName?: string
        dnsNames?: string[]
      }
    }
    const parts = (path: string) => parseAllDocuments(read(folder(path))).map((document): Part => document.toJS())
    const all = ['cluster/control.yaml', 'cluster/node.yaml'].flatMap((path) => manifests(folder(path)))
    const find = (kind: RegExp, name: string) =>
      all.find((each) => kind.test(each.kind) && each.metadata.name === name) ?? expect.unreachable()
    for (const { metadata, spec } of parts('prometheus/pod-monitor.yaml')) {
      const [{ ports }] = find(/Deployment|StatefulSet/, metadata.name).spec.template.spec.containers
      expect(spec.selector.matchLabels).toEqual({ 'app.kubernetes.io/name': metadata.name })
      expect(ports.map(({ name }) => name)).toContain(spec.podMetricsEndpoints[0]?.port)
    }
    for (const { spec } of parts('cluster/network-policy.yaml'))
      find(
        /Deployment|StatefulSet/,
        Object.values((spec as unknown as { podSelector: Part['spec']['selector'] }).podSelector.matchLabels)[0] ?? '',
      )
    for (const { spec } of parts('ingress/ingress.yaml'))
      for (const { service } of spec.rules.flatMap(({ http }) => http.paths.map(({ backend }) => backend)))
        expect(find(/Service/, service.name).spec.ports).toContainEqual(expect.objectContaining({ name: service.port.name }))
    const { hostname } = new URL(settings(folder('cluster/node.env'))['INLET_CONTROL_URL'] ?? '')
    expect(parts('cert-manager/certificate.yaml').find(({ metadata }) => metadata.name === 'inlet-node-api')?.spec).toMatchObject(
      {
        ...{ secretName: 'inlet-node-api', dnsNames: [hostname] },
      },
    )
  })

  test('the image has the version of the repository, and so have the pages that name one', () => {
    const { version } = JSON.parse(read('package.json'))
    for (const page of ['kubernetes', 'systemd'])
      for (const [, named] of read(`docs/how-to/${page}.md`).matchAll(/(?:inlet[-:]|newTag: )(\d+\.\d+\.\d+)/g))
        expect(named, page).toBe(version)
    for (const name of ['one-machine', 'cluster'])
      expect(parse(read(`${folder(name)}/kustomization.yaml`))).toMatchObject({ images: [{ name: 'inlet', newTag: version }] })
  })
})
