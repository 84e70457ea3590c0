/** Functions of text, URLs and addresses, also of hostile values. */
import { createHash } from 'node:crypto'
import { isIPv4, isIPv6 } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Column } from '#model/definition.ts'
import { notAccepting, refusal } from '../../test/support/condition-record.ts'
import { runs } from '../../test/support/thorough.ts'

const text: readonly Column[] = [
  { name: 'x', type: 'VARCHAR', path: '$.x' },
  { name: 'want', type: 'VARCHAR', path: '$.want' },
  { name: 'j', type: 'JSON', path: '$.x' },
  { name: 'keys', type: 'VARCHAR[]', path: '$.want' },
]

/** Returns the records for which an expression of `x` is not `want`. */
async function wrong(expression: string, expected: readonly (readonly [unknown, unknown])[], want = 'want') {
  const all = expected.map((pair) => JSON.stringify({ x: pair[0], want: pair[1] }))
  const failing = (records: readonly string[]) =>
    notAccepting([`${expression} IS NOT DISTINCT FROM ${want}`], text, records, records.length)
  if ((await failing(all)).length === 0) return []
  const found = await Promise.all(all.map(async (record) => ((await failing([record])).length === 0 ? [] : [record])))
  return found.flat()
}

const hostile: readonly (readonly [unknown, null])[] = [
  ...['', ' ', '\0', '🙂', '\\xff', 'ab', ':', '::::', '//', '-1', 'NaN', '%', 'x'.repeat(100_000), ':'.repeat(100_000)],
  null,
].map((x) => [x, null] as const)

describe('split_part', () => {
  const piece = fc.string({ unit: fc.constantFrom('a', 'b', ',', ';', 'é', '🙂', '\n', '^', ']', '-', '\\', '.'), maxLength: 12 })

  test.each([',', 'a', '🙂', '^', ']', '-', '\\', '.', ',;', 'ab', '..'])(
    'splits by %j as other programs do',
    async (separator) => {
      const quotedSeparator = `'${separator}'`
      const texts = fc.sample(piece, runs(100, 1_000))
      for (const number of [1, 2, 3, ...([...separator].length === 1 ? [-1, -2] : [])]) {
        const expected = texts.map((x) => [x, x.split(separator).at(number > 0 ? number - 1 : number) ?? ''] as const)
        expect(await wrong(`split_part(x, ${quotedSeparator}, ${number})`, expected), String(number)).toEqual([])
      }
    },
  )

  test('of NULL is NULL, and of hostile text that text', async () => {
    expect(
      await wrong(
        "split_part(x, ',', 1)",
        hostile.map(([x]) => [x, x] as const),
      ),
    ).toEqual([])
    expect(
      await wrong("split_part(x, ',', 2)", [
        [null, null],
        ['', ''],
      ]),
    ).toEqual([])
  })

  test.each([
    ["split_part(s, s, 1) = ''", 'the separator of "split_part" must be a text constant'],
    ["split_part(s, '', 1) = ''", 'must be a text constant that is not empty'],
    ["split_part(s, ',', i) = ''", 'the part of "split_part" must be a number from 1 to 100, or from -1 to -100 from the end'],
    ["split_part(s, ',', 0) = ''", 'must be a number from 1 to 100'],
    ["split_part(s, ',', 101) = ''", 'must be a number from 1 to 100'],
    ["split_part(s, ', ', -1) = ''", 'must be a number from 1 to 100'],
    ["split_part(s, ',') = ''", '"split_part" takes a text, a separator and the number of a part, such as'],
    ["split_part(i, ',', 1) = ''", 'takes text, not a number: cast it, such as CAST("i" AS VARCHAR)'],
    [`split_part(s, '${'x'.repeat(100)}', 100) = ''`, 'too long for so many parts'],
  ])('%s is rejected', async (condition, message) => {
    expect(await refusal(condition)).toContain(message)
  })
})

describe('sha256', () => {
  test('is the hash of the UTF-8 text, in hex', async () => {
    const texts = ['', 'a', 'é🙂', '\0', '\\xff', 'x'.repeat(100_000)]
    const expected = texts.map((x) => [x, createHash('sha256').update(x).digest('hex')] as const)
    expect(await wrong('sha256(x)', [...expected, [null, null]])).toEqual([])
  })

  test.each([
    ["sha256(i) = ''", '"sha256" takes text, not a number: cast it, such as CAST("i" AS VARCHAR)'],
    ["sha256(l) = ''", 'not a list'],
    ["sha256() = ''", '"sha256" takes one text, such as sha256(email)'],
    [Array.from({ length: 101 }, () => "sha256(s) = ''").join(' OR '), 'makes too much text'],
  ])('%s is rejected', async (condition, message) => {
    expect(await refusal(condition)).toContain(message)
  })
})

describe('mask_ip', () => {
  test.each(
    [
      ['192.168.10.77', '192.168.10.0'],
      ['0.0.0.0', '0.0.0.0'],
      ['255.255.255.255', '255.255.255.0'],
      ['2001:db8:85a3:8d3:1319:8a2e:370:7348', '2001:db8:85a3::'],
      ['2001:0DB8:0000:0000:0000:0000:0000:0001', '2001:db8::'],
      ['2001:db8:0:1::', '2001:db8::'],
      ['0:0:1:2:3:4:5:6', '0:0:1::'],
      ['0:1::', '0:1::'],
      ['::', '::'],
      ['::1', '::'],
      ['1::', '1::'],
      ['1:2:3:4:5:6:7::', '1:2:3::'],
      ['::2:3:4:5:6:7:8', '0:2:3::'],
      ['::ffff:10.20.30.40', '::ffff:10.20.30.0'],
      ['::FFFF:0a14:1e28', '::ffff:10.20.30.0'],
      ['0:0:0:0:0:ffff:255.1.2.3', '::ffff:255.1.2.0'],
      ['64:ff9b::192.0.2.33', '64:ff9b::'],
      ['::1.2.3.4', '::'],
      ...[
        '1.2.3',
        '1.2.3.4.5',
        '1.2.3.256',
        '01.2.3.4',
        '1.2.3.4 ',
        '1.2.3.4:80',
        '1.2.3.-4',
        '１.2.3.4',
        '1.2.3.4\n',
        '0x1.2.3.4',
      ],
      ...[
        ':',
        ':::',
        '1::2::3',
        '1:2:3:4:5:6:7',
        '1:2:3:4:5:6:7:8:9',
        '1:2:3:4::5:6:7:8',
        '::1:2:3:4:5:6:7:8',
        ':1',
        '1:',
        '1:2:3:4:5:6:7:8::',
      ],
      ...[
        '[::1]',
        '::1%eth0',
        '::g',
        '::12345',
        '::ffff:1.2.3.256',
        '::ffff:1.2.3',
        '1.2.3.4::',
        '::1.2.3.4:5',
        '1:2:3:4:5:6:7:1.2.3.4',
      ],
    ].map((pair) => (typeof pair === 'string' ? ([pair, null] as const) : (pair as [string, string]))),
  )('of %j is %j', async (x, masked) => {
    expect(await wrong('mask_ip(x)', [[x, masked]])).toEqual([])
  })

  test('is NULL for what is not an address', async () => {
    expect(
      await wrong(
        'mask_ip(x)',
        hostile.filter(([x]) => x !== '::::'),
      ),
    ).toEqual([])
  })

  test('agrees with other programs about what is an address, and about its canonical text', async () => {
    const group = fc.oneof(
      fc.constantFrom('0', '00', 'ffff', '1'),
      fc.integer({ min: 0, max: 0xffff }).map((each) => each.toString(16)),
    )
    const ipv4 = fc.array(fc.integer({ min: 0, max: 256 }), { minLength: 3, maxLength: 5 }).map((octets) => octets.join('.'))
    const end = fc.oneof(group, fc.constant(''), ipv4)
    const address = fc.oneof(
      ipv4,
      fc
        .tuple(fc.array(fc.oneof({ arbitrary: group, weight: 5 }, fc.constant('')), { minLength: 1, maxLength: 8 }), end)
        .map(([all, last]) => [...all, last].join(':')),
      fc
        .tuple(fc.array(group, { maxLength: 6 }), fc.array(group, { maxLength: 4 }))
        .map(([start, rest]) => `${start.join(':')}::${rest.join(':')}`),
    )
    const expected = fc.sample(address, runs(500, 20_000)).map((x) => [x, expectedMask(x)] as const)
    expect(expected.filter(([, masked]) => masked !== null).length).toBeGreaterThan(50)
    expect(await wrong('mask_ip(x)', expected)).toEqual([])
  })

  test('takes text', async () => {
    expect(await refusal("mask_ip(i) = ''")).toContain('"mask_ip" takes text, not a number')
    expect(await refusal("mask_ip(s, 24) = ''")).toContain('"mask_ip" takes one address, such as mask_ip(client)')
  })
})

/** The mask as Node's URL parser sees it. */
function expectedMask(address: string): string | null {
  if (isIPv4(address)) return address.replace(/\d+$/, '0')
  if (!isIPv6(address)) return null
  const canonical = (written: string) => new URL(`http://[${written}]/`).hostname.slice(1, -1)
  const [head = '', tail] = canonical(address).split('::')
  const [start, rest] = [head, tail ?? ''].map((half) => half.split(':').filter((each) => each !== '')) as [string[], string[]]
  const all = [...start, ...Array.from({ length: 8 - start.length - rest.length }, () => '0'), ...rest]
  if (all.slice(0, 6).join(':') === '0:0:0:0:0:ffff') {
    const [high, low] = all.slice(6).map((each) => Number.parseInt(each, 16)) as [number, number]
    return `::ffff:${high >> 8}.${high & 255}.${low >> 8}.0`
  }
  return canonical(`${all.slice(0, 3).join(':')}:0:0:0:0:0`)
}

describe('parts of a URL', () => {
  const page = 'HTTPS://me:pw@Shop.Example.COM:8443/a%20b/c;d?x=1&utm_source=news%20letter+%F0%9F%99%82&x=2&e&n=#x=3&frag=1'

  test.each([
    [
      'url_host(x)',
      [
        [page, 'shop.example.com'],
        ['http://[2001:DB8::1]:80/', '2001:db8::1'],
        ['http://a@b@c/', 'c'],
        ['http://münchen.de', 'münchen.de'],
        ['android-app://com.example/x', 'com.example'],
        ['http://h?q', 'h'],
        ['http://h#f', 'h'],
        ['file:///etc/passwd', null],
        ['http://good.example\\@evil.example/', null],
        ['http://evil.example\t/', null],
        ['http:// a/', null],
        ['http://a b/', null],
        ['http://h:port/', null],
        ['http://h:65535/', 'h'],
        ['http://h:0000080/', 'h'],
        ['http://h:/', 'h'],
        ['http://h:65536/', null],
        ['http://h:99999/', null],
        ['http://h:123456/', null],
        ['http://[::1/', null],
        ['/path?x=1', null],
        ['//host/path', null],
        ['mailto:a@b.example', null],
        ['javascript://%0aalert(1)', '%0aalert(1)'],
        [' http://a/', null],
        ['1http://a/', null],
      ],
    ],
    [
      'url_path(x)',
      [
        [page, '/a%20b/c;d'],
        ['http://h', '/'],
        ['http://h?x=/y', '/'],
        ['http://h/#/y', '/'],
        ['http://h/a//b/../c\nd', '/a//b/../c\nd'],
        ['file:///etc/passwd', '/etc/passwd'],
        ['http://a b/c', null],
        ['/path', null],
      ],
    ],
    [
      "url_param(x, 'x')",
      [
        [page, '1'],
        ['http://h?x=', ''],
        ['http://h?x', ''],
        ['http://h?x&x=2', ''],
        ['http://h?ax=1&x=2', '2'],
        ['http://h?xa=1&x=2', '2'],
        ['http://h?a?x=1', null],
        ['http://h?a=?x=1', null],
        ['http://h?%78=5', '5'],
        ['http://h?x=a=b%3Dc', 'a=b=c'],
        ['http://h?x=%zz%', '%zz%'],
        ['http://h?x=%ff', null],
        ['http://h?x=%00', '\0'],
        ['http://h?x=a\nb', 'a\nb'],
        ['http://h/x=1', null],
        ['http://h#x=1', null],
        ['http://h?X=1', null],
        ['?x=1', null],
      ],
    ],
    ["url_param(x, 'utm_source')", [[page, 'news letter 🙂']]],
    [
      "url_param(x, 'a b[é&]')",
      [
        ['http://h?a+b%5B%c3%A9%26%5d=1', '1'],
        ['http://h?a%20b[é%26]=2', '2'],
      ],
    ],
  ] as readonly [string, readonly (readonly [string, string | null])[]][])('%s', async (expression, expected) => {
    expect(await wrong(expression, expected)).toEqual([])
  })

  test.each(['url_host(x)', 'url_path(x)', "url_param(x, 'a')"])('%s is NULL for what is not a URL', async (expression) => {
    expect(await wrong(expression, hostile)).toEqual([])
  })

  test('agree with the parser of browsers', async () => {
    const letter = fc.constantFrom('a', 'b', 'x', '&', '=', '+', '%41', '%2B', '%20', 'é', '🙂', '?', ';')
    const query = fc.string({ unit: letter, maxLength: 12 })
    const words = fc.string({ unit: fc.constantFrom('a', 'b', '.', '-', '%20', ';', '@'), maxLength: 6 })
    const url = fc
      .tuple(
        fc.constantFrom('a.example', 'B.example:8080', 'u:p@c.example', 'd.example:65535'),
        words,
        query,
        fc.constantFrom('', '#x=1'),
      )
      .map(([host, path, query, fragment]) => `https://${host}/x${path}?${query}${fragment}`)
    const urls = fc.sample(url, runs(500, 20_000))
    const parsed = urls.map((each) => new URL(each))
    expect(
      await wrong(
        'url_host(x)',
        urls.map((each, index) => [each, parsed[index]?.hostname] as const),
      ),
    ).toEqual([])
    expect(
      await wrong(
        "url_param(x, 'x')",
        urls.map((each, index) => [each, parsed[index]?.searchParams.get('x')] as const),
      ),
    ).toEqual([])
    expect(
      await wrong(
        "url_param(x, 'a')",
        urls.map((each, index) => [each, parsed[index]?.searchParams.get('a')] as const),
      ),
    ).toEqual([])
  })

  test.each([
    ["url_param(s, s) = ''", 'the name of "url_param" must be a text constant that is not empty'],
    ["url_param(s, '') = ''", 'the name of "url_param" must be a text constant that is not empty'],
    [`url_param(s, '${'n'.repeat(3_000)}') = ''`, 'the name of "url_param" is too long'],
    ["url_param(s) = ''", '"url_param" takes a URL and a name, such as'],
    ["url_host(s, 1) = ''", '"url_host" takes one URL, such as url_host(page)'],
    ["url_path(t) = ''", '"url_path" takes text, not a TIMESTAMP'],
    [Array.from({ length: 21 }, () => "url_param(s, 'a') = ''").join(' OR '), 'makes too much text'],
  ])('%s is rejected', async (condition, message) => {
    expect(await refusal(condition)).toContain(message)
  })
})

describe('json_keys', () => {
  test('has the names of an object, in order', async () => {
    const expected = [
      [{ b: 1, a: { c: 2 }, '': null, 'é🙂"': [] }, ['b', 'a', '', 'é🙂"']],
      [null, null],
    ] as const
    expect(await wrong('json_keys(j)', expected, 'keys')).toEqual([])
    const none = ['x', 5, [1, { a: 1 }], {}].map((x) => JSON.stringify({ x }))
    expect(await notAccepting(['len(json_keys(j)) = 0'], text, none, none.length)).toEqual([])
    const one = [JSON.stringify({ x: '{"a": 1, "a": 2}' })]
    expect(
      await notAccepting(
        ["json_keys(CAST(x AS JSON)) = ['a', 'a'] AND list_contains(json_keys('{\"b\":1}'), 'b')"],
        text,
        one,
        1,
      ),
    ).toEqual([])
    expect(await notAccepting(['json_keys(CAST(x AS JSON)) IS NULL'], text, [JSON.stringify({ x: '{' })], 1)).toEqual([])
  })

  test.each([
    ['len(json_keys(s)) > 0', '"json_keys" takes JSON, not text: cast it, such as CAST("s" AS JSON)'],
    ['len(json_keys(l)) > 0', 'not a list'],
    ["len(json_keys('{')) > 0", 'is not of type JSON'],
    ['len(json_keys()) > 0', '"json_keys" takes one JSON value, such as json_keys(extra)'],
  ])('%s is rejected', async (condition, message) => {
    expect(await refusal(condition)).toContain(message)
  })
})
