/** The files under deploy/: what they name exists, and the program accepts their settings. */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { readConfig } from '#config.ts'

const root = resolve(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const { devDependencies } = JSON.parse(read('package.json')) as { devDependencies: { node: string } }

/** Reads settings as a start does. An example address resolves to nothing and needs not to. */
function accepts(settings: Readonly<Record<string, string>>): void {
  const own = Object.entries(settings).filter(([name]) => name.startsWith('INLET_'))
  expect(own.length).toBeGreaterThan(0)
  expect(() => readConfig(Object.fromEntries(own))).not.toThrow()
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
    expect(final).toMatch(/^HEALTHCHECK .*\n.*8081\/healthz/m)
  })

  test('has settings that the program accepts', () => {
    const [, env = ''] = /^ENV ((?:.*\\\n)*.*)$/m.exec(final) ?? []
    accepts(Object.fromEntries(env.split(/\s*\\\n\s*/).map((each) => each.split('=') as [string, string])))
  })

  test('gets every file that the package is built from', () => {
    const ignored = read('.dockerignore').split('\n')
    const kept = ignored.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
    for (const path of kept) expect(existsSync(join(root, path)), path).toBe(true)
    const imported = [
      'tools/pack.ts',
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

  test('the settings of the unit are accepted', () => {
    const unit = read('deploy/inlet.service')
    const lines = [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, all = '']) => all.split(' '))
    accepts(Object.fromEntries(lines.map((each) => each.split('=') as [string, string])))
  })
})
