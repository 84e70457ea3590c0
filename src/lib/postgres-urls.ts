/**
 * Splits the URL of a Postgres that may have several hosts, as libpq reads it: `postgres://user@a:5432,b:5433/name`.
 * Returns one URL for each host, in the order given. The text is not checked.
 */
export function splitPostgresUrl(url: string): readonly [string, ...string[]] {
  const [, scheme = '', user = '', hosts = '', rest = ''] = /^(postgres(?:ql)?:\/\/)([^/?#]*@)?([^/?#]*)(.*)$/s.exec(url) ?? []
  const [first = '', ...others] = hosts.split(',').map((host) => scheme + user + host + rest)
  return [first, ...others]
}

/** Returns host and port, without user and password. */
export function serverOf(url: string): string {
  const parsed = URL.parse(url)
  return parsed?.hostname ? `${parsed.hostname}:${parsed.port || 5432}` : 'the server'
}
