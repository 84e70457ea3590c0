/** Operations that other words say better than their name. */
const names: Readonly<Record<string, string>> = {
  signInByLink: 'Sign in by a link',
  signInByEmail: 'Sign in with a password',
  signInByPasskey: 'Sign in with a passkey',
  signInByProvider: 'Sign in with the provider',
  endSession: 'End a session',
  endOtherSessions: 'End other sessions',
}

/** `createKey` becomes `Create key`. */
export function operationName(operation: string): string {
  const words = operation.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return names[operation] ?? words.charAt(0).toUpperCase() + words.slice(1)
}
