import { useSyncExternalStore } from 'react'

/** `system` follows the setting of the machine. */
export type ThemeChoice = 'system' | 'light' | 'dark'

const storageKey = 'inlet-theme'
const systemDark = window.matchMedia('(prefers-color-scheme: dark)')
const listeners = new Set<() => void>()

export function chosenTheme(): ThemeChoice {
  const { theme } = document.documentElement.dataset
  return theme === 'light' || theme === 'dark' ? theme : 'system'
}

export function chooseTheme(choice: ThemeChoice): void {
  const root = document.documentElement
  if (choice === 'system') {
    delete root.dataset['theme']
    localStorage.removeItem(storageKey)
  } else {
    root.dataset['theme'] = choice
    localStorage.setItem(storageKey, choice)
  }
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  systemDark.addEventListener('change', listener)
  return () => {
    listeners.delete(listener)
    systemDark.removeEventListener('change', listener)
  }
}

/** The theme that is shown. */
export function useTheme(): 'light' | 'dark' {
  return useSyncExternalStore(subscribe, () => {
    const choice = chosenTheme()
    return choice === 'system' ? (systemDark.matches ? 'dark' : 'light') : choice
  })
}

export function useThemeChoice(): ThemeChoice {
  return useSyncExternalStore(subscribe, chosenTheme)
}
