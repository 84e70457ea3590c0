/** Operations that other words say better than their name. */
const names: Readonly<Record<string, string>> = {
  signInByLink: 'Sign in by a link',
  signInByEmail: 'Sign in with a password',
  signInByPasskey: 'Sign in with a passkey',
  signInByProvider: 'Sign in with the provider',
  endSession: 'End a session',
  endOtherSessions: 'End other sessions',
}

/** Returns the operation that somebody typed, by its name or as `operationName` shows it. */
export function operationNamed(text: string): string {
  const words = text.trim()
  const known = Object.entries(names).find(([, name]) => name.toLowerCase() === words.toLowerCase())
  if (known !== undefined) return known[0]
  const joined = words.replace(/[\s-]+(\w)/g, (_, letter: string) => letter.toUpperCase())
  return joined.charAt(0).toLowerCase() + joined.slice(1)
}

/** `createKey` becomes `Create key`. */
export function operationName(operation: string): string {
  const words = operation.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return names[operation] ?? words.charAt(0).toUpperCase() + words.slice(1)
}
